import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import {
  apiUrl, COUNT, failure, fillQueue, key, noting, processing, REPORT, run, until, WEATHER,
} from './cases.mjs';

const make = (options = {}, configuration = {}) => new ChatOpenAI({
  model: 'fermata-tiny', apiKey: key, temperature: 0, maxTokens: 300, maxRetries: 0,
  configuration: { baseURL: apiUrl, ...configuration }, ...options });
const model = make();
const person = z.object({ name: z.string().max(12), age: z.number().int() });
const weather = tool(() => REPORT, {
  name: 'get_weather', description: 'Get the weather in a city.',
  schema: z.object({ city: z.string() }) });

async function collected(stream) {
  let text = '';
  let whole;
  for await (const chunk of stream) {
    text += chunk.content;
    whole = whole === undefined ? chunk : whole.concat(chunk);
  }
  return { text, whole };
}

await run({
  async chat() {
    const { content, usage_metadata, response_metadata } = await model.invoke(COUNT);
    return { content, usage_metadata, response_metadata };
  },
  async stream() {
    const { text, whole } = await collected(await model.stream(COUNT));
    return { text, usage: whole.usage_metadata };
  },
  async recall() {
    const messages = [new HumanMessage('The code word is lantern.')];
    messages.push(new AIMessage((await model.invoke(messages)).content));
    messages.push(new HumanMessage('What is the code word?'));
    return (await model.invoke(messages)).content;
  },
  batch: async () =>
    (await model.batch([COUNT, COUNT, COUNT])).map((answer) => answer.content),
  async logprobs() {
    const answer = await make({ logprobs: true, topLogprobs: 3, maxTokens: 5 }).invoke(COUNT);
    return answer.response_metadata.logprobs.content;
  },
  async tool_turns() {
    const bound = model.bindTools([weather]);
    const messages = [new HumanMessage(WEATHER)];
    const first = await bound.invoke(messages);
    messages.push(first);
    for (const call of first.tool_calls) messages.push(await weather.invoke(call));
    const results = messages.filter((message) => message instanceof ToolMessage).length;
    return { calls: first.tool_calls, results, last: (await bound.invoke(messages)).content };
  },
  async tool_stream() {
    const { whole } = await collected(await model.bindTools([weather]).stream(WEATHER));
    return whole.tool_calls;
  },
  schema: () => model.withStructuredOutput(person, { method: 'jsonSchema' }).invoke(
    'Give me a JSON object with name Ben and age 7.'),
  schema_tool: () => model.withStructuredOutput(
    z.object({ city: z.string() }), { name: 'get_weather', method: 'functionCalling' },
  ).invoke(WEATHER),
  async abort() {
    const leave = new AbortController();
    const stream = await make({ maxTokens: 4000, modelKwargs: { ignore_eos: true } }).stream(
      'Tell me a story.', { signal: leave.signal });
    let computed = 0;
    let chunks = 0;
    const failed = await failure((async () => {
      for await (const _ of stream) {
        chunks += 1;
        if (chunks === 5) {
          computed = await processing();
          leave.abort();
        }
      }
    })());
    await until(async () => (await processing()) === 0);
    return { computed, chunks, failed };
  },
  bad_request: () => failure(make({ modelKwargs: { top_k: 'many' } }).invoke('Hi')),
  too_long: () => failure(model.invoke('word '.repeat(20_000))),
  not_found: () => failure(make({}, { baseURL: `${apiUrl}/nothing` }).invoke('Hi')),
  wrong_key: () => failure(make({ apiKey: 'wrong' }).invoke('Hi')),
  async queue_full() {
    const release = await fillQueue();
    const failed = await failure(model.invoke('Hi'));
    await release();
    return failed;
  },
  async retried() {
    const release = await fillQueue();
    const seen = [];
    const fetch = noting(seen, (status) => status === 429 && release());
    return { text: (await make({ maxRetries: 5 }, { fetch }).invoke(COUNT)).content, seen };
  },
});
