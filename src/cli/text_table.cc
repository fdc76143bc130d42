// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::cli {
namespace {

constexpr std::string_view kGap = "  ";

}  // namespace

std::string plain(std::string text) {
  std::ranges::replace_if(text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, ' ');
  return text;
}

std::string text_table(std::span<const Column> columns,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    titles.push_back(columns[i].title);
    widths.push_back(columns[i].title.size());
    for (const auto& row : rows) widths.back() = std::max(widths.back(), row[i].size());
  }
  std::string table;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) line += kGap;
      line += columns[i].number ? fmt::format("{:>{}}", row[i], widths[i])
                                : fmt::format("{:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  };
  add(titles);
  for (const auto& row : rows) add(row);
  return table;
}

}  // namespace baton::cli
