// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace baton::cli {

struct TableStyle {
  bool colour = false;
  std::size_t width = 0;  // 0: as wide as it gets
};

// The answer to GET /workers as a table for people: a line per worker, and how many are in which
// state. An error where it is no such answer.
Result<std::string> workers_table(std::string_view json, TableStyle style);

}  // namespace baton::cli
