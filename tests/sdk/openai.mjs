import OpenAI from 'openai';
import {
  apiUrl, CITY, COUNT, failure, fillQueue, key, noting, PERSON, processing, REPORT, run, until,
  user, WEATHER,
} from './cases.mjs';

const statuses = [];
const client = new OpenAI({
  baseURL: apiUrl, apiKey: key, maxRetries: 0, fetch: noting(statuses),
});
const model = 'fermata-tiny';
const greedy = { model, temperature: 0, max_tokens: 300 };
const tool = {
  type: 'function',
  function: { name: 'get_weather', description: 'Get the weather in a city.', parameters: CITY },
};
const schema = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: PERSON } };
const chat = (body) => client.chat.completions.create({ ...greedy, ...body });

async function collected(stream) {
  const out = { text: '', roles: [], reasons: [], usages: [], chunks: 0 };
  for await (const chunk of stream) {
    out.chunks += 1;
    if (chunk.usage) out.usages.push(chunk.usage);
    for (const choice of chunk.choices) {
      out.text += choice.delta.content ?? '';
      if (choice.delta.role) out.roles.push(choice.delta.role);
      if (choice.finish_reason) out.reasons.push(choice.finish_reason);
    }
  }
  return out;
}

await run({
  async models() {
    const names = [];
    for await (const one of client.models.list()) names.push(one.id);
    return names;
  },
  chat: () => chat({ messages: [user(COUNT)] }),
  async stream() {
    const body = { messages: [user(COUNT)], stream: true, stream_options: { include_usage: true } };
    return collected(await chat(body));
  },
  async recall() {
    const messages = [user('The code word is lantern.')];
    messages.push((await chat({ messages })).choices[0].message);
    messages.push(user('What is the code word?'));
    return (await chat({ messages })).choices[0].message;
  },
  choices: () => chat({ messages: [user(COUNT)], n: 2 }),
  completion: () => client.completions.create({ ...greedy, prompt: 'Once', max_tokens: 8 }),
  prompts: () => client.completions.create({ ...greedy, prompt: ['Once', 'The'], max_tokens: 8 }),
  async abort() {
    const stream = await chat(
      { messages: [user('Tell me a story.')], stream: true, max_tokens: 4000, ignore_eos: true });
    let chunks = 0;
    let computed = 0;
    for await (const _ of stream) {
      chunks += 1;
      if (chunks === 5) {
        computed = await processing();
        break; // Which ends the request, says the client's own documentation.
      }
    }
    await until(async () => (await processing()) === 0);
    return { chunks, computed };
  },
  async signal() {
    const leave = new AbortController();
    const answer = client.chat.completions.create(
      { ...greedy, messages: [user('Tell me a story.')], max_tokens: 4000, ignore_eos: true },
      { signal: leave.signal });
    const failed = failure(answer);
    await until(async () => (await processing()) === 1);
    leave.abort();
    await until(async () => (await processing()) === 0);
    return failed;
  },
  logprobs: () =>
    chat({ messages: [user(COUNT)], logprobs: true, top_logprobs: 3, max_tokens: 5 }),
  tool_call: () => chat({ messages: [user(WEATHER)], tools: [tool] }),
  async tool_turns() {
    const messages = [user(WEATHER)];
    const first = (await chat({ messages, tools: [tool] })).choices[0].message;
    messages.push(first);
    for (const call of first.tool_calls ?? []) {
      messages.push({ role: 'tool', tool_call_id: call.id, content: REPORT });
    }
    return { calls: first.tool_calls, last: (await chat({ messages, tools: [tool] })).choices[0] };
  },
  async run_tools() {
    const cities = [];
    const runner = client.chat.completions.runTools({
      ...greedy,
      stream: true,
      messages: [user(WEATHER)],
      tools: [{
        type: 'function',
        function: {
          ...tool.function,
          parse: JSON.parse,
          function: ({ city }) => {
            cities.push(city);
            return REPORT;
          },
        },
      }],
    });
    return { text: await runner.finalContent(), cities };
  },
  tool_required: () =>
    chat({ messages: [user(WEATHER)], tools: [tool], tool_choice: 'required' }),
  schema: () => chat(
    { messages: [user('Give me a JSON object with name Ben and age 7.')], response_format: schema }),
  async schema_stream() {
    const stream = await chat({
      messages: [user('Give me a JSON object with name Ben and age 7.')], response_format: schema,
      stream: true });
    return collected(stream);
  },
  response: () => client.responses.create(
    { model, temperature: 0, max_output_tokens: 300, input: COUNT }),
  async response_stream() {
    const stream = await client.responses.create(
      { model, temperature: 0, max_output_tokens: 300, input: COUNT, stream: true });
    const out = { types: [], text: '', whole: '' };
    for await (const event of stream) {
      out.types.push(event.type);
      if (event.type === 'response.output_text.delta') out.text += event.delta;
      if (event.type === 'response.completed') {
        out.whole = event.response.output.map(
          (item) => item.content.map((part) => part.text).join('')).join('');
      }
    }
    return out;
  },
  response_tool: () => client.responses.create({
    model, temperature: 0, input: WEATHER, tools: [{ type: 'function', ...tool.function }] }),
  bad_request: () => failure(chat({ messages: [user('Hi')], temperature: 'hot' })),
  bad_stream: () => failure(chat({ messages: [user('Hi')], temperature: 'hot', stream: true })),
  too_long: () => failure(chat({ messages: [user('word '.repeat(20_000))] })),
  not_found: () => failure(client.get('/nothing/here')),
  unsupported: () => failure(client.embeddings.create({ model, input: 'x' })),
  async embeddings() {
    // The client asks for base64 unless told otherwise, and turns it into numbers.
    const input = ['Count from 1 to 9.', 'Tell me a story.'];
    const plain = await client.embeddings.create({ model, input });
    const floats = await client.embeddings.create({ model, input, encoding_format: 'float' });
    return { plain, floats };
  },
  wrong_key: () =>
    failure(client.withOptions({ apiKey: 'wrong' }).chat.completions.create(
      { ...greedy, messages: [user('Hi')] })),
  async queue_full() {
    const release = await fillQueue();
    const failed = await failure(chat({ messages: [user('Hi')] }));
    await release();
    return failed;
  },
  async retried() {
    const release = await fillQueue();
    const seen = [];
    const fetch = noting(seen, (status) => status === 429 && release());
    const answer = await client.withOptions({ maxRetries: 5, fetch }).chat.completions.create(
      { ...greedy, messages: [user(COUNT)] });
    return { seen, text: answer.choices[0].message.content };
  },
});
