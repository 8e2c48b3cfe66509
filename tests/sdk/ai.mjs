import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, stepCountIs, streamObject, streamText, tool } from 'ai';
import { z } from 'zod';
import {
  apiUrl, COUNT, failure, fillQueue, key, noting, processing, REPORT, run, until, user, WEATHER,
} from './cases.mjs';

const provide = (options = {}) => createOpenAICompatible({
  name: 'fermata', baseURL: apiUrl, apiKey: key, includeUsage: true,
  supportsStructuredOutputs: true, ...options });
const provider = provide();
const greedy = {
  model: provider('fermata-tiny'), temperature: 0, maxOutputTokens: 300, maxRetries: 0,
};
const person = z.object({ name: z.string().max(12), age: z.number().int() });
const endless = createOpenAICompatible({
  name: 'fermata', baseURL: apiUrl, apiKey: key,
  fetch: (address, options) => fetch(address, {
    ...options, body: JSON.stringify({ ...JSON.parse(options.body), ignore_eos: true }) }),
});

function weather(cities) {
  return tool({
    description: 'Get the weather in a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => {
      cities.push(city);
      return REPORT;
    },
  });
}

await run({
  async chat() {
    const { text, finishReason, usage } = await generateText({ ...greedy, prompt: COUNT });
    return { text, finishReason, usage };
  },
  async stream() {
    const answer = streamText({ ...greedy, prompt: COUNT });
    let text = '';
    for await (const piece of answer.textStream) text += piece;
    return { text, finishReason: await answer.finishReason, usage: await answer.usage };
  },
  async recall() {
    const messages = [user('The code word is lantern.')];
    messages.push(...(await generateText({ ...greedy, messages })).response.messages);
    messages.push(user('What is the code word?'));
    return (await generateText({ ...greedy, messages })).text;
  },
  async tool_turns() {
    const cities = [];
    const { text, steps } = await generateText({
      ...greedy, prompt: WEATHER, tools: { get_weather: weather(cities) },
      stopWhen: stepCountIs(3) });
    return { text, cities, reasons: steps.map((step) => step.finishReason) };
  },
  async tool_stream() {
    const cities = [];
    const answer = streamText({
      ...greedy, prompt: WEATHER, tools: { get_weather: weather(cities) },
      stopWhen: stepCountIs(3) });
    let text = '';
    for await (const piece of answer.textStream) text += piece;
    return { text, cities };
  },
  async schema() {
    return (await generateObject({
      ...greedy, schema: person, prompt: 'Give me a JSON object with name Ben and age 7.',
    })).object;
  },
  async schema_stream() {
    const answer = streamObject({
      ...greedy, schema: person, prompt: 'Give me a JSON object with name Ben and age 7.' });
    for await (const _ of answer.partialObjectStream);
    return answer.object;
  },
  async abort() {
    const leave = new AbortController();
    let computed = 0;
    let pieces = 0;
    const answer = streamText({
      ...greedy, model: endless('fermata-tiny'), prompt: 'Tell me a story.', maxOutputTokens: 4000,
      abortSignal: leave.signal, onAbort: () => {} });
    for await (const _ of answer.textStream) {
      pieces += 1;
      if (pieces === 5) {
        computed = await processing();
        leave.abort();
      }
    }
    await until(async () => (await processing()) === 0);
    return { computed, pieces };
  },
  bad_request: () => failure(generateText({
    ...greedy, prompt: 'Hi', providerOptions: { fermata: { top_k: 'many' } } })),
  too_long: () => failure(generateText({ ...greedy, prompt: 'word '.repeat(20_000) })),
  not_found: () => failure(generateText({
    ...greedy, model: provide({ baseURL: `${apiUrl}/nothing` })('fermata-tiny'), prompt: 'Hi' })),
  wrong_key: () => failure(generateText({
    ...greedy, model: provide({ apiKey: 'wrong' })('fermata-tiny'), prompt: 'Hi' })),
  async queue_full() {
    const release = await fillQueue();
    const failed = await failure(generateText({ ...greedy, prompt: 'Hi' }));
    await release();
    return failed;
  },
  async retried() {
    const release = await fillQueue();
    const seen = [];
    const model = provide(
      { fetch: noting(seen, (status) => status === 429 && release()) })('fermata-tiny');
    const { text } = await generateText({ ...greedy, model, maxRetries: 5, prompt: COUNT });
    return { seen, text };
  },
});
