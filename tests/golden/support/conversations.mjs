// SPDX-License-Identifier: Apache-2.0
// Conversations to render: what clients send, as the engines hand it to a template.

const user = (content) => ({ role: 'user', content });
const assistant = (content, more = {}) => ({ role: 'assistant', content, ...more });
const system = (content) => ({ role: 'system', content });
const tool = (content, tool_call_id = 'abcdef123', name = 'get_weather') => ({ role: 'tool', tool_call_id, name, content });
const call = (name, args, id = 'abcdef123') => ({ id, type: 'function', function: { name, arguments: args } });

export const TOOLS = [
  { type: 'function', function: { name: 'get_weather', description: 'The weather at a "place", in °C or °F <now>', parameters: { type: 'object', properties: { place: { type: 'string', description: "A city's name, e.g. Zürich or 東京" }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'], default: 'celsius' }, days: { type: ['integer', 'null'], minimum: 1 } }, required: ['place'], additionalProperties: false } } },
  { type: 'function', function: { name: 'add', description: 'Adds numbers & returns the sum', parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number', maximum: 1.5e300 } }, required: ['a', 'b'] }, return: { type: 'number', description: 'The sum' } } },
  { type: 'function', function: { name: 'noop', description: '', parameters: {} } },
];

const DOCUMENTS = [{ title: 'On rivers', text: 'Rivers run to the sea.\n' }, { title: 'Über Brücken', text: 'Brücken führen darüber.', contents: 'x' }];

const long = Array.from({ length: 20 }, (_, i) => (i % 2 ? assistant(`Answer ${i}: ${'so it is. '.repeat(i)}`) : user(`Question ${i}? ${'Tell me more. '.repeat(i)}`)));

// A name and the variables of a template, without special tokens and add_generation_prompt.
export const CONVERSATIONS = {
  'one question': { messages: [user('Hello, who are you?')] },
  'a system message': { messages: [system('You are a helpful assistant.'), user('Hi')] },
  'several turns': { messages: [system('Be brief.'), user('What is 2 + 2?'), assistant('4'), user('And 3 + 3?'), assistant('6.'), user('Thanks!')] },
  'white space around': { messages: [system('  padded \n'), user('\n\n  Hi there \t\n'), assistant('  ok  \n'), user(' ')] },
  'empty contents': { messages: [system(''), user(''), assistant(''), user('x')] },
  'many languages': { messages: [user('你好，世界！ Привет, мир! مرحبا שלום 😀👩‍👩‍👧‍👦 e\u0301 \u0000\u001f\u2028 <|im_end|> </s> {{ x }} {% y %}'), assistant('"quotes" \'single\' \\ back\\slash & < > /'), user('ﬁn')] },
  'the assistant last': { messages: [user('Write a poem.'), assistant('Roses are red,')] },
  'two in a row': { messages: [user('First.'), user('Second.'), assistant('Both.'), user('Third.')] },
  'the assistant first': { messages: [assistant('Hello!'), user('Hi')] },
  'system in the middle': { messages: [user('a'), assistant('b'), system('From now on in French.'), user('c')] },
  'only a system message': { messages: [system('Alone.')] },
  'an unknown role': { messages: [{ role: 'narrator', content: 'Once upon a time' }, user('x')] },
  'tools': { messages: [user('How is the weather in Zürich?')], tools: TOOLS },
  'tools and a system message': { messages: [system('Use tools.'), user('How is it in Rome?')], tools: TOOLS.slice(0, 1) },
  'no tools in a list': { messages: [user('Hi')], tools: [] },
  'tools that are null': { messages: [user('Hi')], tools: null },
  'a tool call and its result': { messages: [user('Weather?'), assistant('', { tool_calls: [call('get_weather', { place: 'Zürich', days: 3, deep: { list: [1, 2.5, null, true, 'é'] } })] }), tool('{"degrees": 21}'), assistant('21 °C.'), user('Thanks')], tools: TOOLS },
  'a tool call with null content': { messages: [user('Weather?'), assistant(null, { tool_calls: [call('get_weather', { place: 'Rome' })] }), tool('sunny')], tools: TOOLS },
  'a tool call without content': { messages: [user('Weather?'), { role: 'assistant', tool_calls: [call('get_weather', {})] }, tool('sunny')], tools: TOOLS },
  'arguments as text': { messages: [user('Weather?'), assistant(null, { tool_calls: [call('get_weather', '{"place": "Rome"}')] }), tool('sunny'), assistant('Sunny.'), user('ok')], tools: TOOLS },
  'two tool calls': { messages: [user('Both?'), assistant('Let me see.', { tool_calls: [call('get_weather', { place: 'Bern' }), call('add', { a: 1, b: -2.5 }, 'zyxwvu987')] }), tool('rain'), tool('-1.5', 'zyxwvu987', 'add'), assistant('Rain, and -1.5.'), user('Hm')], tools: TOOLS },
  'a call id of the wrong length': { messages: [user('x'), assistant('', { tool_calls: [call('add', { a: 1 }, 'short')] }), tool('1', 'short')], tools: TOOLS },
  'a result that is an object': { messages: [user('x'), assistant('', { tool_calls: [call('add', { a: 1 })] }), tool({ content: { sum: 1.0, list: [] } }), assistant('1'), user('y')], tools: TOOLS },
  'parts': { messages: [system('s'), user([{ type: 'text', text: 'Look at ' }, { type: 'image' }, { type: 'text', text: ' this.' }])] },
  'parts throughout': { messages: [{ role: 'system', content: [{ type: 'text', text: 'sys' }] }, user([{ type: 'text', text: ' one ' }]), assistant([{ type: 'text', text: 'two' }]), user([{ type: 'text', text: 'three' }])] },
  'content that is a number': { messages: [user(42)] },
  'reasoning in the text': { messages: [user('Why?'), assistant('<think>\nBecause.\n</think>\n\nSo.'), user('And?'), assistant('<think>\nHm\n</think>\n\nWell.')] },
  'reasoning apart': { messages: [user('Why?'), assistant('So.', { reasoning_content: '\nBecause.\n' }), user('And?'), assistant('Well.', { reasoning_content: 'Hm', reasoning: 'Hm' })] },
  'no reasoning there': { messages: [user('Why?'), assistant('So.', { reasoning_content: null }), user('And?'), assistant('Well.', { reasoning_content: '' })] },
  'thinking off': { messages: [user('Quick!')], enable_thinking: false },
  'thinking on': { messages: [system('s'), user('Slow.')], enable_thinking: true, thinking: true, reasoning_effort: 'high' },
  'documents': { messages: [user('Which rivers?')], documents: DOCUMENTS },
  'names': { messages: [{ role: 'user', name: 'Ada', content: 'Hi' }, { role: 'assistant', name: 'Bot', content: 'Hi Ada' }, { role: 'user', name: 'Bob', content: 'And me?' }] },
  'a date of its own': { messages: [user('When?')], date_string: '01 Jan 2000', custom_tools: TOOLS.slice(1, 2), tools_in_user_message: false },
  'twenty messages': { messages: [...long, user('Last one.')] },
  'no messages': { messages: [] },
};
