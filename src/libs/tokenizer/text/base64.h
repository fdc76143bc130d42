// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// The bytes; nothing where it is not base64 with its padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace baton::tokenizer
