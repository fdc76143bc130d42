// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::base64 {

// The standard alphabet of RFC 4648, padded, without line ends.
std::string encode(std::string_view bytes);
// nullopt for text that is not such base64.
std::optional<std::string> decode(std::string_view text);

}  // namespace baton::base64
