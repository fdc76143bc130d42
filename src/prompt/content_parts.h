// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"
#include "prompt/content_format.h"
#include "prompt/rules.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace baton::prompt {

// A message's content as its template sees it.
struct Content {
  jinja::Value value;
  std::string inexact = {};  // why the engine will see other tokens; empty: it will not
};

// A text as a list of one part.
jinja::Value in_parts(jinja::Value text);
// A system message's text or text part without the attribution line that some clients put before it
// (Rules::drops_billing_header). nullopt if the text has none.
std::optional<std::string_view> without_billing_header(std::string_view text);
// Which content is reshaped, and how.
struct ContentShape {
  ContentFormat format = ContentFormat::Text;
  std::size_t message = 0;  // its place in the request
  bool of_system = false;
  Rules rules = {};
};

// Reshapes a message's content as the engine does before rendering. Text parts become text or
// {type, text}; images and their like are named in `inexact`, as are parts that Baton does not know.
// Differs in SGLang, which joins text parts with a blank instead of a line end.
Result<Content> content_of(const jinja::Value* content, const ContentShape& shape);

}  // namespace baton::prompt
