import Anthropic from '@anthropic-ai/sdk';
import {
  CITY, COUNT, failure, fillQueue, key, noting, processing, REPORT, run, until, url, user, WEATHER,
} from './cases.mjs';

const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const model = 'fermata-tiny';
const greedy = { model, temperature: 0, max_tokens: 300 };
const tool = { name: 'get_weather', description: 'Get the weather in a city.', input_schema: CITY };
const message = (body) => client.messages.create({ ...greedy, ...body });
const result = (call) =>
  ({ type: 'tool_result', tool_use_id: call.id, content: REPORT });

await run({
  message: () => message({ messages: [user(COUNT)] }),
  system: () => message({ system: 'Be brief.', messages: [user(COUNT)] }),
  async stream() {
    const stream = client.messages.stream({ ...greedy, messages: [user(COUNT)] });
    let text = '';
    const events = [];
    stream.on('text', (delta) => { text += delta; });
    stream.on('streamEvent', (event) => events.push(event.type));
    return { final: await stream.finalMessage(), text, events };
  },
  async recall() {
    const messages = [user('The code word is lantern.')];
    const { role, content } = await message({ messages });
    messages.push({ role, content }, user('What is the code word?'));
    return message({ messages });
  },
  stop: () => message({ messages: [user(COUNT)], stop_sequences: ['7'] }),
  count: () => client.messages.countTokens({ model, messages: [user(COUNT)] }),
  async tool_turns() {
    const messages = [user(WEATHER)];
    const first = await message({ messages, tools: [tool] });
    messages.push({ role: 'assistant', content: first.content });
    messages.push(
      { role: 'user', content: first.content.filter((c) => c.type === 'tool_use').map(result) });
    return { first, last: await message({ messages, tools: [tool] }) };
  },
  async tool_stream() {
    const stream = client.messages.stream({ ...greedy, messages: [user(WEATHER)], tools: [tool] });
    const pieces = [];
    stream.on('inputJson', (piece) => pieces.push(piece));
    return { final: await stream.finalMessage(), pieces };
  },
  tool_any: () =>
    message({ messages: [user(WEATHER)], tools: [tool], tool_choice: { type: 'any' } }),
  async abort() {
    const stream = client.messages.stream(
      { ...greedy, messages: [user('Tell me a story.')], max_tokens: 4000, ignore_eos: true });
    let deltas = 0;
    let computed = 0;
    for await (const event of stream) {
      if (event.type !== 'content_block_delta') continue;
      deltas += 1;
      if (deltas === 5) {
        computed = await processing();
        break;
      }
    }
    await until(async () => (await processing()) === 0);
    return { deltas, computed };
  },
  bad_request: () => failure(message({ messages: [user('Hi')], temperature: 'hot' })),
  bad_stream: () => failure(message({ messages: [user('Hi')], temperature: 'hot', stream: true })),
  too_long: () => failure(message({ messages: [user('word '.repeat(20_000))] })),
  not_found: () => failure(client.get('/v1/nothing')),
  wrong_key: () => failure(new Anthropic({ baseURL: url, apiKey: 'wrong', maxRetries: 0 })
    .messages.create({ ...greedy, messages: [user('Hi')] })),
  async queue_full() {
    const release = await fillQueue();
    const failed = await failure(message({ messages: [user('Hi')] }));
    await release();
    return failed;
  },
  async retried() {
    const release = await fillQueue();
    const seen = [];
    const fetch = noting(seen, (status) => status === 429 && release());
    const answer = await client.withOptions({ maxRetries: 5, fetch }).messages.create(
      { ...greedy, messages: [user(COUNT)] });
    return { seen, text: answer.content[0].text };
  },
});
