// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::model {

// The component that turns a model's prompts into token ids for routing: Baton, a worker, or none.
enum class Tokenize : std::uint8_t { Local, Engine, Off };
// Whether workers get the ids instead of the text: where they are known to take them, or always.
enum class SendTokenIds : std::uint8_t { Auto, Always, Never };

std::string_view to_string(Tokenize tokenize);
std::optional<Tokenize> parse_tokenize(std::string_view text);
std::optional<SendTokenIds> parse_send_token_ids(std::string_view text);

}  // namespace baton::model
