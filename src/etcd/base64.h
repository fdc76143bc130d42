// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::etcd {

// Requires: less than 1 GiB.
std::string encode_base64(std::string_view bytes);
// nullopt for what is not base64 of the standard alphabet, padded and without blanks.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace baton::etcd
