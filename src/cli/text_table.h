// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <span>
#include <string>
#include <vector>

namespace baton::cli {

// Foreign text without the characters that could move the cursor.
std::string plain(std::string text);

struct Column {
  std::string title;
  bool number = false;  // stands to the right
};

// A line of titles and one for each row, in columns as wide as they must be. Requires: a row has a
// cell for each column.
std::string text_table(std::span<const Column> columns,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace baton::cli
