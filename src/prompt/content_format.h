// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <string_view>

namespace baton::prompt {

// How a template wants the content of a message: as one text, or as OpenAI's list of parts.
enum class ContentFormat : std::uint8_t { Text, Parts };

// What vLLM's `--chat-template-content-format auto` finds: parts where the template has a loop over
// the content of the messages, text otherwise.
ContentFormat content_format_of(std::string_view source);

}  // namespace baton::prompt
