// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace baton::telemetry {

// Appends `text` as the inside of a JSON string that stands on one line wherever it is shown:
// quotes, backslashes, control characters and Unicode's line separators are escaped, and each byte
// that is not UTF-8 becomes U+FFFD.
void append_escaped(fmt::memory_buffer& out, std::string_view text);

}  // namespace baton::telemetry
