// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <string_view>

namespace baton::prompt {

// How a template wants the content of a message: as one text, or as OpenAI's list of parts.
enum class ContentFormat : std::uint8_t { Text, Parts };

// How vLLM finds out (`--chat-template-content-format auto`), by release. Each finds the loops of the
// one before; the last no longer takes a macro's parameter for the content by its name alone.
enum class ContentSearch : std::uint8_t {
  Members,  // a loop over the content of the messages
  Names,    // or over a variable called `content` (0.22)
  Macros,   // or over a macro's parameter that is given the content of a message (0.30)
};

// Parts where the search finds such a loop, text otherwise.
ContentFormat content_format_of(std::string_view source, ContentSearch search);

}  // namespace baton::prompt
