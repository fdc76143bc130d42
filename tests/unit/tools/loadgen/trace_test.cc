// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/trace.h"

#include "support/temporary_directory.h"
#include "tools/loadgen/draw.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

std::string trace_line(std::string_view timestamp, std::string_view input, std::string_view output,
                       std::string_view ids) {
  return fmt::format(R"({{"timestamp":{},"input_length":{},"output_length":{},"hash_ids":{}}})",
                     timestamp, input, output, ids);
}

TEST(Trace, NamesTheFieldOfEachBrokenLine) {
  constexpr std::string_view kTime = "'timestamp' must be there and be milliseconds from 0";
  constexpr std::string_view kInput =
      "'input_length' must be there and be a number of tokens from 1";
  constexpr std::string_view kOutput = "'output_length' must be there and be a number of tokens";
  constexpr std::string_view kList = "'hash_ids' must be there and be a list of numbers";
  constexpr std::string_view kNumbers = "'hash_ids' must be there and be a list of whole numbers";
  const std::vector<std::pair<std::string, std::string_view>> all{
      {trace_line("-1", "1", "1", "[]"), kTime},
      {trace_line("\"0\"", "1", "1", "[]"), kTime},
      {trace_line("null", "1", "1", "[]"), kTime},
      {trace_line("1e999", "1", "1", "[]"), kTime},
      {trace_line("0", "0", "1", "[]"), kInput},
      {trace_line("0", "1.5", "1", "[]"), kInput},
      {trace_line("0", "10000001", "1", "[]"), kInput},
      {trace_line("0", "99999999999", "1", "[]"), kInput},
      {trace_line("0", "1", "1000001", "[]"), kOutput},
      {trace_line("0", "1", "1e3", "[]"), kOutput},
      {trace_line("0", "1", "true", "[]"), kOutput},
      {trace_line("0", "1", "1", "7"), kList},
      {trace_line("0", "1", "1", "{}"), kList},
      {trace_line("0", "1", "1", "null"), kList},
      {trace_line("0", "1", "1", "[1.5]"), kNumbers},
      {trace_line("0", "1", "1", "[[1]]"), kNumbers},
      {trace_line("0", "1", "1", "[\"1\"]"), kNumbers},
      {trace_line("0", "1", "1", "[9223372036854775808]"), kNumbers},
  };
  for (const auto& [text, message] : all) {
    EXPECT_EQ(complaint(trace_line("5", "1", "1", "[]") + "\n\n" + text + "\n"),
              fmt::format("line 3: {}", message))
        << text;
  }
}

TEST(Trace, TakesTheEndsOfItsRanges) {
  const auto trace = parse_trace(
      trace_line("0", "10000000", "1000000", "[-9223372036854775808,9223372036854775807,-1]"));
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->front().input_length, 10'000'000U);
  EXPECT_EQ(trace->front().output_length, 1'000'000U);
  EXPECT_THAT(trace->front().hash_ids,
              ElementsAre(0x8000000000000000U, 0x7FFFFFFFFFFFFFFFU, 0xFFFFFFFFFFFFFFFFU));
}

TEST(Trace, LinesMayEndInAnyWayAndHoldMore) {
  const std::string line = R"({"extra": {"a": [1]}, "hash_ids": [ 1 , 2 ], "output_length": 2, )"
                           R"("input_length": 1024, "timestamp": 1.5e3})";
  for (const std::string& text : {line, line + "\n", line + "\r\n", "\n \t\r\n" + line + "\n\n"}) {
    const auto trace = parse_trace(text);
    ASSERT_TRUE(trace) << trace.error().message();
    ASSERT_EQ(trace->size(), 1U);
    EXPECT_EQ(trace->front().at_ms, 0);
    EXPECT_THAT(trace->front().hash_ids, ElementsAre(1, 2));
  }
}

TEST(Trace, CutInALineIsRefusedAtThatLine) {
  const std::string first = trace_line("0", "600", "2", "[1,2]") + "\n";
  const std::string second = trace_line("7", "600", "2", "[1,3]");
  for (std::size_t size = 1; size < second.size(); ++size) {
    EXPECT_THAT(complaint(first + second.substr(0, size)), testing::StartsWith("line 2: ")) << size;
  }
  EXPECT_EQ(parse_trace(first + second)->size(), 2U);
}

TEST(Trace, IsReadAsItWasWritten) {
  Draw draw(31);
  std::vector<TraceRequest> written;
  std::string text;
  double at = 0;
  for (int i = 0; i < 500; ++i) {
    TraceRequest request{.at_ms = at,
                         .input_length = static_cast<std::uint32_t>(1 + draw.below(9000)),
                         .output_length = static_cast<std::uint32_t>(1 + draw.below(500)),
                         .hash_ids = {}};
    std::string ids;
    for (std::uint32_t n = 0; n < (request.input_length + 511) / 512; ++n) {
      request.hash_ids.push_back(draw.below(1'000'000));
      ids += fmt::format("{}{}", n == 0 ? "" : ",", request.hash_ids.back());
    }
    text += trace_line(fmt::to_string(at), fmt::to_string(request.input_length),
                       fmt::to_string(request.output_length), "[" + ids + "]") +
            "\n";
    at += static_cast<double>(draw.below(1000)) / 4;
    written.push_back(std::move(request));
  }
  const auto trace = parse_trace(text);
  ASSERT_TRUE(trace) << trace.error().message();
  ASSERT_EQ(trace->size(), written.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ((*trace)[i].at_ms, written[i].at_ms);
    EXPECT_EQ((*trace)[i].input_length, written[i].input_length);
    EXPECT_EQ((*trace)[i].output_length, written[i].output_length);
    EXPECT_EQ((*trace)[i].hash_ids, written[i].hash_ids);
  }
}

TEST(Trace, OfAFileNamesFileAndLine) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("trace.jsonl", "{}\n");
  EXPECT_THAT(read_trace(path, 512).error().message(),
              testing::StartsWith("--trace " + path + ": line 1: 'timestamp'"));
  const std::string empty = directory.write("empty.jsonl", "");
  EXPECT_EQ(read_trace(empty, 512).error().message(),
            "--trace " + empty + ": there is no request in it");
  const std::string good = directory.write("good.jsonl", trace_line("0", "1", "1", "[]"));
  EXPECT_EQ(read_trace(good, 512)->size(), 1U);
}

TEST(MadeUpTrace, HasThePaceAndTheLengthsThatItPromises) {
  const auto trace = make_trace(4000, 11);
  EXPECT_NEAR(4000 / (trace.back().at_ms / 1000), 3.4, 0.2);
  for (const auto& request : trace) {
    ASSERT_GT(request.input_length, 512U);
    ASSERT_LE(request.input_length, 120'000U);
    ASSERT_GE(request.output_length, 1U);
    ASSERT_LE(request.output_length, 2'000U);
  }
  EXPECT_TRUE(make_trace(0, 1).empty());
  EXPECT_EQ(make_trace(1, 1).size(), 1U);
}

}  // namespace
}  // namespace baton::loadgen
