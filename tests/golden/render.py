#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders chat templates with Jinja2, set up as the engines have it: one JSON request and answer a line."""

import datetime
import functools
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """The block that marks what the assistant said; it changes nothing in the text."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


@functools.cache
def compiled(template, now):
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = datetime.datetime.fromtimestamp(now).strftime
    return environment.from_string(template)


def render(request):
    template = compiled(request["template"], request["now"])
    return template.render(**json.loads(request["variables"]))


def answer(line):
    try:
        return {"text": render(json.loads(line))}
    except Exception as error:  # pylint: disable=broad-except  # whatever a template runs into
        return {"error": str(error), "raised": type(error) is jinja2.exceptions.TemplateError}


for line in sys.stdin:
    print(json.dumps(answer(line)))
