// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>

namespace baton::loadgen {

// One page with tables and plots of one result, or of several side by side. It needs nothing but
// itself: data, style and script are in it.
std::string report_html(std::span<const nlohmann::ordered_json> results);

// Parts of the page, the same for all: the files in report/.
std::string_view report_page();
std::string_view report_style();
std::string_view report_plots();
std::string_view report_script();

// The figures of several results side by side, for a terminal.
std::string comparison_text(std::span<const nlohmann::ordered_json> results);

}  // namespace baton::loadgen
