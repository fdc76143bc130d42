// SPDX-License-Identifier: Apache-2.0
// Templates in the manner of well-known families, each leaning on other parts of the language.

export const TEMPLATES = {
  chatml: String.raw`
{%- for message in messages -%}
  {{ '<|im_start|>' ~ message.role ~ '\n' ~ (message.content or '') ~ '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`,

  'instruct with a system prompt inside': String.raw`
{%- if messages and messages[0].role == 'system' -%}
  {%- set system = messages[0].content | trim -%}{%- set rest = messages[1:] -%}
{%- else -%}
  {%- set rest = messages -%}
{%- endif -%}
{{ bos_token }}
{%- for m in rest -%}
  {%- if (m.role == 'user') != (loop.index0 is even) -%}
    {{ raise_exception('Roles must alternate, but message ' ~ loop.index ~ ' is from "' ~ m.role ~ '"') }}
  {%- endif -%}
  {%- if m.role == 'user' -%}
    [INST] {{ '<<SYS>>\n' ~ system ~ '\n<</SYS>>\n\n' if loop.first and system is defined else '' }}{{ m.content }} [/INST]
  {%- elif m.role == 'assistant' %} {{ m.content | trim }} {{ eos_token }}{% endif -%}
{%- endfor -%}`,

  'white space as it comes': String.raw`{% for message in messages %}
    {% if message.role == 'user' %}
  User:   {{ message.content }}

    {% elif message.role == 'assistant' %}
  Bot: {{- message.content -}}  .
    {% else %}
  {# a comment #}   [{{ message.role }}]
	{%+ if true %}kept{% endif +%}

    {% endif %}
{% endfor %}
end
`,

  'thinking cut from earlier turns': String.raw`
{%- set ns = namespace(last=-1, count=0) -%}
{%- for m in messages if m.role == 'user' -%}{%- set ns.count = ns.count + 1 -%}{%- endfor -%}
{%- for m in messages -%}{%- if m['role'] == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{{- bos_token -}}
{%- for m in messages -%}
  {%- set content = m.content if m.content is string else (m.content | tojson) -%}
  {%- if m.role == 'assistant' -%}
    {%- if '</think>' in content and loop.index0 < ns.last -%}
      {%- set content = content.split('</think>')[-1].strip() -%}
    {%- endif -%}
    <|A|>{{ content }}{{ eos_token }}
  {%- else -%}
    <|{{ m.role[0] | upper }}|>{{ content }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|A|>{{ '<think>\n' if enable_thinking is not defined or enable_thinking else '<think>\n\n</think>\n' }}{%- endif -%}
({{ ns.count }}, {{ ns.last }})`,

  'tools through macros': String.raw`
{%- macro type_of(spec) -%}
  {%- if spec.type is string -%}{{ spec.type }}
  {%- elif spec.type is sequence -%}{{ spec.type | join(' | ') }}
  {%- else -%}any{%- endif -%}
{%- endmacro -%}
{%- macro signature(f, indent=2) -%}
{{ '//' }} {{ f.description | default('no description', true) }}
type {{ f.name }} = (_: {
{% for key, spec in (f.parameters.properties or {}).items() %}
{{ ' ' * indent }}{{ key }}{{ '' if key in f.parameters.get('required', []) else '?' }}: {{ type_of(spec) }},
{%- if spec.enum is defined %} // {{ spec.enum | map('tojson') | join(', ') }}{% endif %}

{% endfor %}
}) => any;
{%- endmacro -%}
{%- if tools -%}
namespace functions {
{% for tool in tools | map(attribute='function') -%}
{{ signature(tool) }}

{% endfor -%}
} // {{ tools | length }} functions: {{ tools | map(attribute='function.name') | sort | join(', ') }}
{% endif -%}
{%- for m in messages -%}
[{{ m.role | capitalize }}] {% for call in m.tool_calls or [] -%}
  {{ call.function.name }}({{ call.function.arguments | tojson if call.function.arguments is mapping else call.function.arguments }})
  {%- if not loop.last %}; {% endif -%}
{%- else -%}{{ m.content if m.content is string else m.content | string }}{%- endfor %}
{% endfor -%}`,

  'loops and their variables': String.raw`
{%- for m in messages recursive -%}
  {{ loop.index }}/{{ loop.length }} {{ loop.revindex0 }} {{ loop.cycle('a', 'b', 'c') }} {{ loop.first }} {{ loop.last }} {{ loop.depth }}
  {%- if loop.previtem is defined %} after {{ loop.previtem.role }}{% endif -%}
  {%- if loop.nextitem is defined %} before {{ loop.nextitem.role }}{% endif -%}
  {%- if loop.changed(m.role) %} changed{% endif %}
{% else -%}
nobody spoke
{% endfor -%}
{%- for m in messages -%}{%- if m.role == 'system' %}{% continue %}{% endif -%}{%- if loop.index > 3 %}{% break %}{% endif -%}{{ m.role }},{%- endfor -%}
{%- for a, b in [(1, 'x'), (2, 'y')] %}{{ a }}{{ b }} {% endfor -%}
{{ range(3) | list }} {{ range(10, 0, -3) | join('-') }} {{ messages | map(attribute='role') | unique | list }}
{{ messages | selectattr('role', 'in', ['user', 'tool']) | list | length }} {{ messages | rejectattr('role', 'eq', 'user') | map(attribute='role') | list }}
{{ messages | groupby('role') | map('first') | list }} {{ messages[-1:] | map(attribute='role') | first | default('none') }}`,

  'strings and numbers': String.raw`
{%- set text = messages[0].content | string if messages else 'nothing' -%}
{{ text.upper() }}|{{ text.lower() }}|{{ text.title() }}|{{ text | capitalize }}|{{ text[::-1] }}|{{ text[1:4] }}|{{ text[-3:] }}|{{ text | length }}
{{ text.split() }} {{ text.split('o', 1) }} {{ text.replace('o', '0') }} {{ text | replace('l', 'L', 1) }} {{ text.find('o') }} {{ text.count('l') }}
{{ text.strip('Hh?') }} {{ '  x '.lstrip() }}| {{ text.startswith('Hell') }} {{ text.endswith(('?', '!')) }} {{ 'abc' in text }} {{ text is string }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 10 | float }} {{ '3.7' | float | int }} {{ 3.14159 | round(2) }} {{ 5 | abs }}
{{ true and 0 or 'x' }} {{ not none }} {{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ none is none }} {{ [1, 2] + [3] }} {{ (1,) }} {{ {'a': 1, 'b': [true, none, 'it\'s']} }} {{ [1, [2.0, 'x']] | tojson }}
{{ 'a,b'.split(',') | join(' & ') }} {{ ['b', 'A', 'c'] | sort }} {{ [3, 1, 2] | sort(reverse=true) | list }} {{ [1, 2, 3] | sum }} {{ [4, 9] | max }} {{ {'k': 'v'} | dictsort }} {{ 'x' * 3 }} {{ '%s is %d' | format('n', 4) }} {{ "%05.1f|%-5s|%x" % (3.14159, 'ab', 255) }} {{ 'a\tb\\n' }}
{{ 'line one\nline two' | indent(4) }} {{ 'line one\nline two' | indent(2, true) }} {{ 'a b c' | wordcount }} {{ text | truncate(9) }} {{ '<b>' | escape }} {{ '<b>' | e ~ '<i>' }} {{ 'äöü' | upper }} {{ 'ß' | upper }} {{ [[1, 2], [3]] | map('length') | list }} {{ 'abc' | list }} {{ 'abc' | first }}{{ 'abc' | last }} {{ [1,2,3,4,5] | batch(2) | list }} {{ 'x'.join(['1', '2']) }} {{ 'abc' | reverse }}`,

  'json in all its forms': String.raw`
{%- for m in messages %}{{ m | tojson }}
{{ m | tojson(indent=2) }}
{{ m | tojson(sort_keys=true, separators=(',', ':')) }}
{{ m | tojson(ensure_ascii=true) }}
{% endfor -%}
{%- if tools %}{{ tools | tojson(indent=4) }}{% endif -%}
{{ {'a': {'b': []}, 'c': {}, 'd': [1, 2.5, -0.0, 1e100, true, none], 'é': '\u00e9\n"'} | tojson }} {{ [] | tojson(indent=1) }} {{ 'x' | tojson }} {{ none | tojson }} {{ 1.0 | tojson }}`,

  'set in blocks, scopes and calls': String.raw`
{%- set block -%}
  {{ bos_token }}{% for m in messages %}{{ m.role }} {% endfor %}
{%- endset -%}
[{{ block | trim }}] {{ block | length }}
{%- set x = 1 -%}{%- for i in [1, 2] -%}{%- set x = x + 10 -%}{{ x }},{%- endfor -%}{{ x }}
{%- if true -%}{%- set x = 5 -%}{%- endif -%}{{ x }}
{%- macro wrap(tag) -%}<{{ tag }}>{{ caller() }}</{{ tag }}>{%- endmacro -%}
{%- call wrap('b') -%}inside {{ x }}{%- endcall -%}
{%- macro many(a, b='B', c=none) -%}{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}{%- endmacro -%}
{{ many(1) }} {{ many(1, c=3) }} {{ many(1, 2, 3, 4, 5) }} {{ many(a='x', z=1) }}
{%- filter upper -%} shout {%- endfilter -%}
{%- set a, b = 1, 2 -%}{{ a }}{{ b }}
{%- with y = 3 -%}{{ y }}{%- endwith -%}{{ y is defined }}
{%- raw -%}{{ not rendered }} {% if %}{%- endraw -%}
{%- generation -%}said{%- endgeneration -%}
{{ '%d' % x }} {{ undefined_thing }} {{ undefined_thing is undefined }} {{ messages.nothing is defined }} {{ (messages | first).absent | default('d') }}`,

  'dates and documents': String.raw`
{%- set today = strftime_now('%Y-%m-%d') -%}
Today is {{ today }} ({{ strftime_now('%A, %d %B %Y %H:%M:%S %j %p %y %b %a %-d %%') }}).
{% if documents %}{% for d in documents %}Document {{ loop.index0 }}: {{ d['title'] }}
{{ d.text | trim | indent(2, first=true) }}
{% endfor %}{% endif %}
{%- for m in messages %}{{ m['role'] }}{{ ' (' ~ m.name ~ ')' if m.name is defined }}: {{ m['content'] if m['content'] is not none else '-' }}{{ '\n' }}{% endfor %}
{%- if reasoning_effort is defined %}effort {{ reasoning_effort }}{% endif %}{{ thinking | default(false) }}`,

  'parts or text': String.raw`
{%- macro render(content, upper=false) -%}
  {%- if content is none or content is undefined -%}
  {%- elif content is string -%}{{ content.upper() if upper else content }}
  {%- elif content is iterable and content is not mapping -%}
    {%- for part in content -%}
      {%- if 'image' in part or part.type == 'image' -%}<image {{ loop.index }}>
      {%- elif 'text' in part -%}{{ render(part.text, upper=upper) }}
      {%- else -%}{{ raise_exception('Unexpected part: ' ~ part) }}{%- endif -%}
    {%- endfor -%}
  {%- else -%}{{ raise_exception('Unexpected content: ' + content | tojson) }}{%- endif -%}
{%- endmacro -%}
{%- for m in messages -%}
  {%- if m.role not in ['system', 'user', 'assistant', 'tool', 'developer'] -%}{{ raise_exception("Unknown role: '" + m.role + "'") }}{%- endif -%}
  <{{ m.role }}>{{ render(m.content, m.role == 'system') }}</{{ m.role }}>
{%- endfor -%}`,
};

// Templates that are wrong, with any variables: Jinja says so, and so must Baton.
export const WRONG = [
  '{% if x %}', '{{ x', '{% for x in %}{% endfor %}', '{% endif %}', "{{ 'x }}", '{% nonsense %}', '{{ 1 + }}', '{% set %}', '{{ x | nofilter }}', '{{ x is notest }}',
  "{{ raise_exception('stop here: ' ~ 42) }}", '{{ 1 / 0 }}', "{{ 'a' + 1 }}", '{{ none.x.y }}', '{{ missing.attribute }}', '{{ missing + 1 }}', '{{ [][3].x }}', '{{ 5() }}', "{{ missing('x') }}",
  '{% for x in 5 %}{% endfor %}', "{% set ns = namespace() %}{{ ns.a.b }}", '{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}', "{{ ''.__class__.__mro__ }}", '{{ messages.append(1) }}', "{{ {}.update({'a': 1}) }}", '{% include "x" %}', '{{ range(1000000000) | list | length }}',
  '{% break %}', "{{ '%d' | format('x') }}", "{{ 'abc'.format(1 }}", "{{ [1, 'a'] | sort }}", '{{ {} | tojson(nope=1) }}', '{{ messages[0].content.nothing() }}',
];
