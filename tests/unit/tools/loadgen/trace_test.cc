// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

namespace baton::loadgen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string complaint(std::string_view text) {
  const auto trace = parse_trace(text);
  return trace ? "accepted" : trace.error().message();
}

TEST(Trace, ReadsMooncakesLines) {
  const auto trace = parse_trace(
      R"({"timestamp": 1000, "input_length": 700, "output_length": 5, "hash_ids": [4, 9]})"
      "\n\n"
      R"({"timestamp": 1027.5, "input_length": 3, "output_length": 0, "hash_ids": []})"
      "\n");
  ASSERT_TRUE(trace) << trace.error().message();
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[0].at_ms, 0);
  EXPECT_EQ((*trace)[0].input_length, 700U);
  EXPECT_THAT((*trace)[0].hash_ids, ElementsAre(4, 9));
  EXPECT_EQ((*trace)[1].at_ms, 27.5);
  EXPECT_EQ((*trace)[1].output_length, 1U);  // an answer has a token
}

TEST(Trace, IsPutInOrderOfTimeAndOtherwiseLeftAsItStands) {
  const auto line = [](int at, int input) {
    return R"({"output_length":1,"hash_ids":[],"timestamp":)" + std::to_string(at) +
           R"(,"input_length":)" + std::to_string(input) + "}\n";
  };
  const auto trace = parse_trace(line(20, 1) + line(10, 2) + line(20, 3) + line(10, 4));
  ASSERT_TRUE(trace);
  std::vector<std::uint32_t> order;
  for (const auto& request : *trace) order.push_back(request.input_length);
  EXPECT_THAT(order, ElementsAre(2, 4, 1, 3));
  EXPECT_EQ(trace->back().at_ms, 10);
}

TEST(Trace, TakesNoMoreIdsThanThePromptHasBlocks) {
  const auto trace =
      parse_trace(R"({"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1,2,3]})");
  ASSERT_TRUE(trace);
  EXPECT_THAT(trace->front().hash_ids, ElementsAre(1));
}

TEST(Trace, AnIdStandsForAsManyTokensAsIsSaid) {
  constexpr const char* kLine =
      R"({"timestamp":0,"input_length":130,"output_length":1,"hash_ids":[1,2,3,4]})";
  EXPECT_THAT(parse_trace(kLine)->front().hash_ids, ElementsAre(1));
  EXPECT_THAT(parse_trace(kLine, 64)->front().hash_ids, ElementsAre(1, 2, 3));
}

TEST(Trace, SaysWhichLineIsWrongAndWhy) {
  constexpr const char* kGood =
      R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]})";
  EXPECT_THAT(complaint(std::string(kGood) + "\nno json"), HasSubstr("line 2"));
  EXPECT_THAT(complaint(R"({"input_length":1,"output_length":1,"hash_ids":[]})"),
              HasSubstr("'timestamp'"));
  EXPECT_THAT(complaint(R"({"timestamp":0,"input_length":0,"output_length":1,"hash_ids":[]})"),
              HasSubstr("'input_length'"));
  EXPECT_THAT(complaint(R"({"timestamp":0,"input_length":1,"output_length":-1,"hash_ids":[]})"),
              HasSubstr("'output_length'"));
  EXPECT_THAT(complaint(R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":["a"]})"),
              HasSubstr("'hash_ids'"));
  EXPECT_THAT(complaint(R"({"timestamp":0,"input_length":1,"output_length":1})"),
              HasSubstr("'hash_ids'"));
  EXPECT_THAT(complaint("\n"), HasSubstr("no request"));
}

TEST(Trace, NamesTheFileThatCannotBeRead) {
  const auto trace = read_trace("/nowhere/trace.jsonl", 512);
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().message(), HasSubstr("/nowhere/trace.jsonl"));
}

TEST(MadeUpTrace, IsTheSameForTheSameSeedAndInOrder) {
  const auto one = make_trace(500, 7);
  const auto same = make_trace(500, 7);
  const auto other = make_trace(500, 8);
  ASSERT_EQ(one.size(), 500U);
  EXPECT_EQ(one.front().at_ms, 0);
  bool differs = false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].hash_ids, same[i].hash_ids);
    EXPECT_EQ(one[i].at_ms, same[i].at_ms);
    differs = differs || one[i].input_length != other[i].input_length;
    if (i > 0) EXPECT_GE(one[i].at_ms, one[i - 1].at_ms);
  }
  EXPECT_TRUE(differs);
}

TEST(MadeUpTrace, HasOneIdForEachBlockAndComesBackToWhatWasSaid) {
  const auto trace = make_trace(2000, 3);
  std::set<std::uint64_t> seen;
  std::size_t blocks = 0;
  std::size_t known = 0;
  double input = 0;
  for (const auto& request : trace) {
    ASSERT_EQ(request.hash_ids.size(), (request.input_length + kTraceBlock - 1) / kTraceBlock);
    EXPECT_EQ(request.hash_ids.front(), 0U);
    // What is new in a prompt stands behind what is not.
    bool fresh = false;
    for (const std::uint64_t id : request.hash_ids) {
      const bool is_known = !seen.insert(id).second;
      EXPECT_FALSE(fresh && is_known);
      fresh = fresh || !is_known;
      known += is_known ? 1 : 0;
      ++blocks;
    }
    input += request.input_length;
  }
  // The shape of chat traffic: about 12,000 tokens, a third or so of them said before.
  EXPECT_GT(input / 2000, 6'000);
  EXPECT_LT(input / 2000, 20'000);
  const double share = static_cast<double>(known) / static_cast<double>(blocks);
  EXPECT_GT(share, 0.25);
  EXPECT_LT(share, 0.6);
}

}  // namespace
}  // namespace baton::loadgen
