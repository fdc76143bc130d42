// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/report.h"

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

void fill(std::string& page, std::string_view place, std::string_view text) {
  page.replace(page.find(place), place.size(), text);
}

}  // namespace

std::string report_html(std::span<const Json> results) {
  Json data = Json::array();
  for (Json result : results) {
    result.erase("samples");  // single requests are not drawn
    data.push_back(std::move(result));
  }
  std::string page(report_page());
  fill(page, "{{style}}", report_style());
  fill(page, "{{script}}", fmt::format("{}{}", report_plots(), report_script()));
  fill(page, "{{data}}", embedded(data));
  return page;
}

}  // namespace baton::loadgen
