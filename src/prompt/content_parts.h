// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "prompt/content_format.h"
#include "prompt/jinja/value.h"

#include <cstddef>
#include <string>

namespace baton::prompt {

// A message's content as its template sees it.
struct Content {
  jinja::Value value;
  std::string inexact = {};  // why the engine will see other tokens; empty: it will not
};

// A text as a list of one part.
jinja::Value in_parts(jinja::Value text);
// Reshapes the content of message `index` as vLLM does before rendering. Text parts become text or
// {type, text}; images and their like are named in `inexact`, as are parts that Baton does not know.
// Differs in SGLang, which joins text parts with a blank instead of a line end.
Result<Content> content_of(const jinja::Value* content, ContentFormat format, std::size_t index);

}  // namespace baton::prompt
