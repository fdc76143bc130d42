// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>
#include <string_view>

namespace baton::sim {

std::string encode_base64(std::string_view bytes);
// Empty for text that is not base64.
std::string decode_base64(std::string_view text);

}  // namespace baton::sim
