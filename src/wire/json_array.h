// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace baton::wire {

// The raw text of an array's elements, at most `limit` of them; none where the text is no array.
// Requires: `json` is valid JSON.
std::vector<std::string_view> elements(std::string_view json, std::size_t limit);

// The raw text of an array's first element; nullopt where the text is no array, or an empty one.
// Requires: `json` is valid JSON.
std::optional<std::string_view> first_element(std::string_view json);

}  // namespace baton::wire
