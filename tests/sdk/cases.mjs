// What every client's script shares. A script is run as `node SCRIPT URL KEY [CASE...]`; it prints
// one JSON object with the result of each case, or {"error": ...} of one that threw.
import { strict as assert } from 'node:assert';

export const [url, key, ...wanted] = process.argv.slice(2);

// Other people's pages say how to connect, so scripts use no more than what these say.
export const apiUrl = `${url}/v1`;

export function user(content) {
  return { role: 'user', content };
}

export const COUNT = 'Count from 1 to 40.';
export const WEATHER = 'What is the weather in Oslo?';
// As the model's corpus writes it.
export const REPORT = '{"temperature": 7, "sky": "cloudy"}';
export const CITY = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
};
export const PERSON = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};

export async function get(path) {
  const answer = await fetch(url + path);
  assert(answer.ok, `${path}: ${answer.status}`);
  return answer;
}

// How many requests are being computed now.
export async function processing() {
  const slots = await (await get('/slots')).json();
  return slots.filter((slot) => slot.is_processing).length;
}

export async function waiting() {
  const text = await (await get('/metrics')).text();
  return Number(/^llamacpp:requests_deferred (\d+)/m.exec(text)[1]);
}

export async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}

// A fetch that notes the status of every answer.
export function noting(statuses, onStatus = () => {}) {
  return async (...args) => {
    const answer = await fetch(...args);
    statuses.push(answer.status);
    onStatus(answer.status);
    return answer;
  };
}

// Occupies a server of one slot and a queue of one with two streams, until release(). Nobody reads
// them, and their events are large: soon the server has no more room for them and waits.
export async function fillQueue() {
  const leave = new AbortController();
  const open = () => fetch(`${url}/completion`, {
    method: 'POST',
    body: JSON.stringify(
      { prompt: 'x', n_predict: -1, ignore_eos: true, stream: true, n_probs: 100 }),
    signal: leave.signal,
  });
  const streams = [open()];
  await until(async () => (await processing()) === 1);
  streams.push(open());
  await until(async () => (await waiting()) === 1);
  return async () => {
    leave.abort();
    await Promise.allSettled(streams);
    await until(async () => (await processing()) + (await waiting()) === 0);
  };
}

// What a client makes of a failure: its class, and what it knows of the answer.
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return {
      class: error.constructor.name,
      status: error.status ?? error.statusCode ?? error.lastError?.statusCode,
      message: error.message,
    };
  }
  return null;
}

export async function run(cases) {
  const results = {};
  for (const name of wanted.length > 0 ? wanted : Object.keys(cases)) {
    try {
      assert(cases[name], `there is no case ${name}`);
      results[name] = await cases[name]();
    } catch (error) {
      results[name] = { error: `${error.constructor.name}: ${error.message}`, stack: error.stack };
    }
  }
  console.log(JSON.stringify(results));
}
