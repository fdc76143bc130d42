// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "loadgen/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::loadgen {
namespace {

using Json = nlohmann::ordered_json;

// JSON that cannot end the element it stands in, whatever names endpoints have given.
std::string embedded(const Json& data) {
  std::string safe;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string report_html(std::span<const Json> results) {
  Json data = Json::array();
  for (Json result : results) {
    result.erase("samples");  // single requests are not drawn
    data.push_back(std::move(result));
  }
  return fmt::format(R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>baton bench</title>
<style>
{}</style>
</head>
<body>
<header><h1>baton bench</h1><p id="about"></p></header>
<main id="page"><noscript>The plots are drawn by a script in this page; allow it.</noscript></main>
<script type="application/json" id="data">{}</script>
<script>
{}{}</script>
</body>
</html>
)",
                     report_style(), embedded(data), report_plots(), report_script());
}

}  // namespace baton::loadgen
