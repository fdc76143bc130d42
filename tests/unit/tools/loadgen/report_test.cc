// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/report.h"

#include "tools/loadgen/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <string>
#include <vector>

namespace baton::loadgen {
namespace {

using OrderedJson = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

OrderedJson result_of(const std::string& label, double ttft_ms) {
  Options options;
  options.url = "http://bench.example:8080";
  options.label = label;
  Tally tally({}, 5, 1);
  RequestRecord request;
  request.ended = std::chrono::seconds(1);
  request.ending = Ending::Completed;
  request.decode_worker = "</script><b>";
  tally.sent(request.sent, {}, true);
  const std::chrono::duration<double, std::milli> ttft(ttft_ms);
  tally.first_token(request.sent, std::chrono::duration_cast<std::chrono::nanoseconds>(ttft), true);
  tally.ended(request);
  return result_json(*make_plan(options),
                     {.tally = tally, .fleet = {}, .known_workers = {}, .model = "demo"});
}

// What stands between the tags of the page's data.
std::string data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(Report, HoldsItsDataWhole) {
  const std::vector<OrderedJson> results{result_of("first", 10), result_of("second", 20)};
  const std::string page = report_html(results);
  const OrderedJson data = OrderedJson::parse(data_of(page));
  ASSERT_EQ(data.size(), 2U);
  for (const char* part : {"label", "configuration", "summary", "workers", "series", "histograms"})
    EXPECT_EQ(data[1][part], results[1][part]) << part;
}

TEST(Report, NeedsNothingFromElsewhere) {
  const std::vector<OrderedJson> results{result_of("one", 10)};
  std::string page = report_html(results);
  page.replace(page.find(data_of(page)), data_of(page).size(), "");
  EXPECT_THAT(page, Not(HasSubstr("://")));
  EXPECT_FALSE(std::regex_search(
      page, std::regex(R"(<link|<img|@import|\bimport\b|\bfetch\b|url\(|src=|href=)")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(Report, HasAllItsPartsOnce) {
  const std::vector<OrderedJson> results{result_of("{{script}}{{style}}", 10)};
  const std::string page = report_html(results);
  for (const std::string_view part : {report_style(), report_plots(), report_script()}) {
    const std::size_t at = page.find(part);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(page.find(part, at + 1), std::string::npos);
  }
  EXPECT_EQ(OrderedJson::parse(data_of(page))[0]["label"], "{{script}}{{style}}");
}

TEST(Report, IsNotBrokenByNamesThatLookLikeMarkup) {
  const std::vector<OrderedJson> results{result_of("<img src=x>", 10)};
  const std::string page = report_html(results);
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_EQ(OrderedJson::parse(data_of(page))[0]["label"], "<img src=x>");
}

TEST(Comparison, PutsResultsSideBySideAndLeavesOutWhatNobodyTold) {
  const std::vector<OrderedJson> results{result_of("first", 10),
                                         result_of("a much longer name", 20)};
  const std::string text = comparison_text(results);
  EXPECT_THAT(text, HasSubstr("first"));
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(TTFT p50 ms +10\.00 +20\.00\n)"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(completed +1 +1\n)"))) << text;
  EXPECT_THAT(text, Not(HasSubstr("goodput")));
  // Columns end where their labels end.
  const std::size_t width = text.find('\n');
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_EQ(text.find('\n', at) - at, width);
}

}  // namespace
}  // namespace baton::loadgen
