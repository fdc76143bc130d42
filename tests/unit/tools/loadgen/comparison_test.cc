// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace baton::loadgen {
namespace {

using OrderedJson = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

OrderedJson compared(const std::string& label, OrderedJson summary,
                     OrderedJson balance = OrderedJson::object()) {
  return {{"label", label}, {"summary", std::move(summary)}, {"balance", std::move(balance)}};
}

TEST(ComparisonText, HasARowForEachFigureThatSomebodyTold) {
  const std::vector<OrderedJson> results{
      compared("one", {{"requests", {{"completed", 7}, {"refused", 0}}}, {"requests_per_s", 3.5}}),
      compared("two", {{"requests", {{"completed", 12345}}}, {"hit_rate", 0.256}})};
  EXPECT_EQ(comparison_text(results),
            "                             one         two\n"
            "completed                      7       12345\n"
            "refused                        0           -\n"
            "requests/s                  3.50           -\n"
            "cache hits %                   -       25.60\n");
}

TEST(ComparisonText, NullIsNotTold) {
  const std::vector<OrderedJson> results{
      compared("a", {{"hit_rate", nullptr}, {"goodput", nullptr}, {"ttft_ms", {{"count", 0}}}})};
  EXPECT_EQ(comparison_text(results), "                               a\n");
}

TEST(ComparisonText, TextWhereANumberShouldBeIsNotTold) {
  const std::vector<OrderedJson> results{
      compared("a", {{"requests", "many"}, {"requests_per_s", "fast"}, {"ttft_ms", 3}})};
  EXPECT_EQ(comparison_text(results), "                               a\n");
}

TEST(ComparisonText, SharesArePercentages) {
  const std::vector<OrderedJson> results{
      compared("a", {{"goodput", {{"requests_per_s", 2.0}, {"share", 0.5}}}, {"hit_rate", 1.0}})};
  const std::string text = comparison_text(results);
  EXPECT_THAT(text, HasSubstr("goodput requests/s          2.00\n"));
  EXPECT_THAT(text, HasSubstr("met the target %           50.00\n"));
  EXPECT_THAT(text, HasSubstr("cache hits %              100.00\n"));
}

TEST(ComparisonText, BalanceIsOfTheWorkThatCounts) {
  const OrderedJson balance = {
      {"prefill",
       {{"requests", {{"max_over_mean", 9.0}}}, {"computed_tokens", {{"max_over_mean", 1.25}}}}},
      {"decode", {{"output_tokens", {{"max_over_mean", 1.5}}}}}};
  const std::vector<OrderedJson> results{compared("a", OrderedJson::object(), balance)};
  const std::string text = comparison_text(results);
  EXPECT_THAT(text, HasSubstr("prefill max/mean            1.25\n"));
  EXPECT_THAT(text, HasSubstr("decode max/mean             1.50\n"));
  EXPECT_THAT(text, Not(HasSubstr("9.00")));
}

TEST(ComparisonText, OfNothingIsAnEmptyLine) {
  EXPECT_EQ(comparison_text({}), std::string(20, ' ') + "\n");
}

}  // namespace
}  // namespace baton::loadgen
