// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/request_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

struct LedgerTest : testing::Test {
  RequestRecord record() {
    RequestRecord made;
    made.id = "id-1";
    made.path = "/v1/completions";
    made.model = "m";
    made.received = RequestRecord::Clock::now() - 10ms;
    made.status = 200;
    made.request_bytes = 11;
    made.response_bytes = 22;
    return made;
  }

  std::string lines;
  telemetry::Registry registry;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  RequestLedger ledger{registry, log, true};
};

TEST_F(LedgerTest, CountsASuccess) {
  RequestRecord done = record();
  done.usage = engine::Usage{.prompt_tokens = 5, .completion_tokens = 7, .cached_tokens = 3};
  done.trace.prefill.sent = done.received;
  done.trace.prefill.done = done.received + 4ms;
  ledger.close(done, ledger.metrics("m"));
  const std::string text = registry.render();
  EXPECT_THAT(text, HasSubstr("baton_requests_total{model=\"m\",outcome=\"ok\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_prompt_tokens_total{model=\"m\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("baton_completion_tokens_total{model=\"m\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("baton_request_bytes_total{model=\"m\"} 11\n"));
  EXPECT_THAT(text, HasSubstr("baton_response_bytes_total{model=\"m\"} 22\n"));
  EXPECT_THAT(text,
              HasSubstr("baton_phase_duration_seconds_count{model=\"m\",phase=\"prefill\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("baton_phase_duration_seconds_count{model=\"m\",phase=\"decode_wait\"} 0\n"));
}

TEST_F(LedgerTest, CountsEveryErrorByItsLabel) {
  for (const ErrorInfo& info : error_table()) {
    RequestRecord failed = record();
    failed.error = Error(info.code, "m");
    ledger.close(failed, ledger.metrics("m"));
    EXPECT_THAT(registry.render(), HasSubstr("baton_requests_total{model=\"m\",outcome=\"" +
                                             std::string(info.label) + "\"} 1\n"));
  }
  EXPECT_THAT(registry.render(), HasSubstr("baton_requests_total{model=\"m\",outcome=\"ok\"} 0\n"));
}

TEST_F(LedgerTest, CountsTheLimitThatARequestRanInto) {
  RequestRecord failed = record();
  failed.error = Error(Errc::InvalidRequest, "too many members").with_limit(Limit::JsonMembers);
  ledger.close(failed, ledger.metrics("m"));
  failed.error = Error(Errc::InvalidRequest, "no model");
  ledger.close(failed, ledger.metrics("m"));
  EXPECT_THAT(registry.render(),
              HasSubstr("baton_limit_refusals_total{limit=\"json_members\"} 1\n"));
}

TEST_F(LedgerTest, CountsModelsNobodyServesTogether) {
  for (int i = 0; i < 3; ++i) ledger.close(record(), ledger.unknown());
  EXPECT_THAT(registry.render(),
              HasSubstr("baton_requests_total{model=\"unknown\",outcome=\"ok\"} 3\n"));
  EXPECT_THAT(registry.render(), Not(HasSubstr("model=\"m\"")));
}

TEST_F(LedgerTest, NeverCountsNegativeTokens) {
  RequestRecord odd = record();
  odd.usage = engine::Usage{.prompt_tokens = -5, .completion_tokens = -1, .cached_tokens = {}};
  ledger.close(odd, ledger.metrics("m"));
  EXPECT_THAT(registry.render(), HasSubstr("baton_prompt_tokens_total{model=\"m\"} 0\n"));
}

TEST_F(LedgerTest, MeasuresTheFirstTokenAndTheTimeBetweenTokens) {
  RequestRecord streamed = record();
  ModelMetrics& metrics = ledger.metrics("m");
  for (int i = 0; i < 3; ++i) streamed.on_token(metrics);
  EXPECT_EQ(streamed.events, 3U);
  ASSERT_TRUE(streamed.first_token);
  EXPECT_GE(*streamed.first_token - streamed.received, 10ms);
  EXPECT_EQ(metrics.time_to_first_token.snapshot().count, 1U);
  EXPECT_EQ(metrics.inter_token.snapshot().count, 2U);
  EXPECT_GE(metrics.time_to_first_token.snapshot().sum, 0.010);
}

TEST_F(LedgerTest, LogsOneLineThatTellsAll) {
  RequestRecord failed = record();
  failed.stream = true;
  failed.status = 502;
  failed.error = Error(Errc::EngineFailed, "it \"broke\"\n");
  failed.trace.prefill.worker = "p:1";
  failed.trace.prefill.rank = 3;
  failed.trace.prefill.sent = failed.received;
  failed.trace.prefill.done = failed.received + 4500us;
  failed.trace.decode.worker = "d:2";
  failed.trace.retries = 2;
  ledger.close(failed, ledger.metrics("m"));
  const auto line = nlohmann::json::parse(lines);
  EXPECT_EQ(line["event"], "request");
  EXPECT_EQ(line["id"], "id-1");
  EXPECT_EQ(line["outcome"], "engine_failed");
  EXPECT_EQ(line["status"], 502);
  EXPECT_EQ(line["stream"], true);
  EXPECT_EQ(line["prefill_worker"], "p:1");
  EXPECT_EQ(line["decode_worker"], "d:2");
  EXPECT_EQ(line["prefill_rank"], 3);
  EXPECT_EQ(line["retries"], 2);
  EXPECT_EQ(line["prefill_ms"], 4.5);
  EXPECT_EQ(line["level"], "warning") << "an engine's failure is the operator's business";
  for (const char* unknown : {"decode_rank", "migrations", "kv_transfer_ms", "decode_wait_ms",
                              "decode_ms", "ttft_ms", "prompt_tokens"}) {
    EXPECT_FALSE(line.contains(unknown)) << unknown;
  }
  EXPECT_EQ(line["error"], "it \"broke\"\n");
}

// prefill-router.md §2.13.
TEST_F(LedgerTest, BoundsTheTransferByTheEndOfThePrefillAndTheFirstToken) {
  RequestRecord done = record();
  done.stream = true;
  EXPECT_FALSE(done.kv_transfer());
  done.trace.prefill.sent = done.received + 1ms;
  done.trace.prefill.done = done.received + 4ms;
  done.trace.decode.sent = done.received + 2ms;
  EXPECT_FALSE(done.kv_transfer()) << "not before there is a token";
  done.first_token = done.received + 9ms;
  EXPECT_EQ(done.prefill_duration(), 3ms);
  EXPECT_EQ(done.kv_transfer(), 5ms);
  EXPECT_EQ(done.decode_wait(), 7ms);
  ledger.close(done, ledger.metrics("m"));
  EXPECT_THAT(registry.render(), HasSubstr("baton_kv_transfer_seconds_count{model=\"m\"} 1\n"));
  EXPECT_EQ(nlohmann::json::parse(lines)["kv_transfer_ms"], 5.0);
}

TEST_F(LedgerTest, NeverTellsOfATransferBackInTime) {
  RequestRecord done = record();
  done.stream = true;
  done.trace.prefill.sent = done.received;
  done.trace.decode.sent = done.received;
  done.first_token = done.received + 3ms;
  done.trace.prefill.done = done.received + 4ms;  // a leg beside the decode may be told late
  EXPECT_EQ(done.kv_transfer(), 0ms);
}

TEST_F(LedgerTest, LogsNothingWhereItIsNotWanted) {
  RequestLedger silent(registry, log, false);
  silent.close(record(), silent.metrics("m"));
  EXPECT_EQ(lines, "");
}

}  // namespace
}  // namespace baton::pipeline
