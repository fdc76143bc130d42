// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/engine_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace baton::engine {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(EngineError, ReadsTheMessageInEveryShapeEnginesWrite) {
  const struct {
    const char* body;
    const char* message;
    std::optional<std::string> param;
  } cases[] = {
      {R"({"error":{"message":"too long","type":"BadRequestError","param":"prompt","code":400}})",
       "too long", "prompt"},
      {R"({"error":{"message":"no param","param":null}})", "no param", std::nullopt},
      {R"({"object":"error","message":"flat","type":"BadRequest","param":"n","code":400})", "flat",
       "n"},
      {R"({"error":"Unauthorized thing"})", "Unauthorized thing", std::nullopt},
      {R"({"detail":"Not Found"})", "Not Found", std::nullopt},
      {R"({"detail":[{"loc":["body","n"],"msg":"bad"}]})", R"([{"loc":["body","n"],"msg":"bad"}])",
       std::nullopt},
      {R"({"error":["odd"]})", R"(["odd"])", std::nullopt},
      {R"({"something":"else"})", R"({"something":"else"})", std::nullopt},
      {"plain words", "plain words", std::nullopt},
      {"", "the engine answered with status 400", std::nullopt},
      {R"({"error":{}})", "the engine answered with status 400", std::nullopt},
      {R"({"error":{"message":"line\nbreak \"quoted\""}})", "line\nbreak \"quoted\"", std::nullopt},
  };
  for (const auto& c : cases) {
    const Error error = read_engine_error(400, c.body, std::nullopt);
    EXPECT_EQ(error.code(), Errc::EngineRejected) << c.body;
    EXPECT_EQ(error.message(), c.message) << c.body;
    EXPECT_EQ(error.param(), c.param) << c.body;
  }
}

TEST(EngineError, PassesTheClientsMistakesOnWithTheirStatus) {
  for (const int status : {400, 404, 410, 413, 414, 418, 422, 431, 451, 499}) {
    const Error error = read_engine_error(status, R"({"message":"m"})", std::nullopt);
    EXPECT_EQ(error.code(), Errc::EngineRejected) << status;
    EXPECT_EQ(error.http_status(), status);
    EXPECT_FALSE(error.retry_after()) << status;
  }
}

TEST(EngineError, TellsWhenToComeBackToAnOverloadedEngine) {
  const struct {
    std::optional<std::string_view> given;
    seconds expected;
  } cases[] = {
      {std::nullopt, seconds(1)},
      {"7", seconds(7)},
      {"0", seconds(0)},
      {"-5", seconds(0)},
      {"999999", seconds(3600)},
      {"", seconds(1)},
      {"soon", seconds(1)},
      {"7s", seconds(1)},
      {"99999999999999999999", seconds(1)},
      {"Wed, 21 Oct 2026 07:28:00 GMT", seconds(1)},
  };
  for (const int status : {429, 503}) {
    for (const auto& c : cases) {
      const Error error = read_engine_error(status, R"({"detail":"full"})", c.given);
      EXPECT_EQ(error.code(), Errc::EngineOverloaded);
      EXPECT_EQ(error.http_status(), status);
      EXPECT_EQ(error.message(), "full");
      EXPECT_EQ(error.retry_after(), c.expected) << c.given.value_or("none");
    }
  }
}

TEST(EngineError, KeepsARefusedKeyToItself) {
  for (const int status : {401, 403, 407}) {
    const Error error = read_engine_error(status, R"({"error":"key sk-secret"})", std::nullopt);
    EXPECT_EQ(error.code(), Errc::EngineUnauthorized);
    EXPECT_EQ(error.http_status(), 502);
    EXPECT_THAT(error.message(), Not(HasSubstr("sk-secret")));
  }
}

TEST(EngineError, CallsEveryOtherStatusAFailureOfTheEngine) {
  for (const int status :
       {302, 405, 408, 409, 411, 415, 417, 421, 425, 426, 500, 501, 502, 504, 599}) {
    const Error error = read_engine_error(status, R"({"message":"boom"})", "9");
    EXPECT_EQ(error.code(), Errc::EngineFailed) << status;
    EXPECT_EQ(error.http_status(), 502) << status;
    EXPECT_THAT(error.message(), HasSubstr("boom"));
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(status)));
  }
}

wire::ResponseHead head(int status,
                        std::initializer_list<std::pair<const char*, const char*>> fields) {
  wire::ResponseHead head;
  head.status = status;
  for (const auto& [name, value] : fields) head.headers.add(name, value);
  return head;
}

TEST(Refusal, IsPassedOnByteForByteWithItsContentType) {
  for (const std::string body :
       {R"({ "object":"error", "message":"flat\u0021" } )", "<h1>no</h1>", "\xff\x00 no text"}) {
    const Error error = read_refusal(head(422, {{"Content-Type", "text/odd; charset=x"}}), body);
    EXPECT_EQ(error.code(), Errc::EngineRejected);
    EXPECT_EQ(error.http_status(), 422);
    ASSERT_TRUE(error.reply());
    EXPECT_EQ(error.reply()->body, body);
    EXPECT_EQ(error.reply()->content_type, "text/odd; charset=x");
  }
}

TEST(Refusal, IsPassedOnHoweverLongItIs) {
  const std::string body(300'000, 'x');  // an engine may quote the whole request
  const Error error = read_refusal(head(400, {}), body);
  ASSERT_TRUE(error.reply());
  EXPECT_EQ(error.reply()->body, body);
  EXPECT_EQ(error.reply()->content_type, "");
}

TEST(Refusal, IsToldInBatonsWordsWhereTheEngineHasNone) {
  EXPECT_FALSE(read_refusal(head(400, {}), "").reply());
  EXPECT_FALSE(read_refusal(head(400, {}), fail(Errc::StreamBroken, "cut")).reply());
  EXPECT_EQ(read_refusal(head(400, {}), fail(Errc::StreamBroken, "cut")).http_status(), 400);
  EXPECT_FALSE(read_refusal(head(400, {{"Content-Encoding", "gzip"}}), "\x1f\x8b").reply());
}

TEST(Refusal, ThatQuotesWhereKvBlocksAreIsKeptFromTheClient) {
  for (const std::string quoted :
       {R"({"error":{"message":"bad: {'kv_transfer_params': {'remote_host': '10.1.2.3'}}"}})",
        R"({"error":{"message":"bad: {\"remote_block_ids\": [[1, 2]]}"}})",
        R"({"detail":[{"input":{"kv_transfer_params":{"remote_host":null,"remote_port":5600}}}]})",
        "'bootstrap_host': 'prefill-7'"}) {
    const Error error = read_refusal(head(400, {}), quoted);
    EXPECT_EQ(error.http_status(), 400);
    EXPECT_FALSE(error.reply()) << quoted;
    EXPECT_EQ(error.message(), "the engine answered with status 400");
    EXPECT_EQ(read_engine_error(500, quoted, {}).message().find("prefill-7"), std::string::npos);
  }
  for (const std::string harmless :
       {R"({"error":{"message":"{'remote_host': None, 'remote_block_ids': None}"}})",
        R"({"detail":[{"input":{"remote_engine_id":null,"remote_port":null}}]})",
        R"({"error":{"message":"what is a remote_host"}})"}) {
    EXPECT_TRUE(read_refusal(head(400, {}), harmless).reply()) << harmless;
  }
}

TEST(Refusal, OfAKeyOrForWantOfTimeOrBetweenUsIsNotPassedOn) {
  for (const int status : {401, 403, 405, 407, 408, 409, 415, 429, 500, 503}) {
    EXPECT_FALSE(read_refusal(head(status, {}), R"({"error":"sk-secret"})").reply()) << status;
  }
}

TEST(EngineError, CutsAMessageThatIsTooLong) {
  EXPECT_EQ(read_engine_error(400, std::string(100'000, 'x'), std::nullopt).message().size(),
            2000U);
  EXPECT_EQ(read_stream_error(std::string(100'000, 'x'), StreamBegun::Yes).message().size(), 2000U);
}

TEST(StreamError, IsAFailureOfTheEngineWithItsMessage) {
  const struct {
    const char* data;
    const char* message;
  } cases[] = {
      {R"({"error":{"message":"KV load failed","code":500}})", "KV load failed"},
      {R"({"error":{"object":"error","message":"aborted"}})", "aborted"},
      {R"({"error":"bare"})", "bare"},
      {R"({"error":{}})", "the engine ended the stream with an error"},
  };
  for (const auto& c : cases) {
    for (const StreamBegun begun : {StreamBegun::No, StreamBegun::Yes}) {
      const Error error = read_stream_error(c.data, begun);
      EXPECT_EQ(error.code(), Errc::EngineFailed) << c.data;
      EXPECT_EQ(error.message(), c.message) << c.data;
    }
  }
}

// Regression: a grammar that SGLang's scheduler refuses comes as an event of a stream with 200.
TEST(StreamError, BeforeTheAnswerBeganIsWhatItsCodeSays) {
  const std::string refused =
      R"({"error":{"object":"error","message":"Failed to compile the grammar","type":"BAD_REQUEST","param":null,"code":400}})";
  const Error error = read_stream_error(refused, StreamBegun::No);
  EXPECT_EQ(error.code(), Errc::EngineRejected);
  EXPECT_EQ(error.http_status(), 400);
  EXPECT_EQ(error.message(), "Failed to compile the grammar");
  ASSERT_TRUE(error.reply());
  EXPECT_EQ(error.reply()->body, refused);
  EXPECT_FALSE(error.info().retryable);
  EXPECT_EQ(read_stream_error(R"({"error":{"message":"full","code":429}})", StreamBegun::No).code(),
            Errc::EngineOverloaded);
  EXPECT_EQ(read_stream_error(refused, StreamBegun::Yes).code(), Errc::EngineFailed)
      << "SGLang says 400 of every exception in the middle of a stream";
  for (const char* code : {"500", "503", "200", "9999999999", R"("400")", "null"}) {
    EXPECT_EQ(read_stream_error(std::string(R"({"error":{"message":"m","code":)") + code + "}}",
                                StreamBegun::No)
                  .code(),
              Errc::EngineFailed)
        << code;
  }
}

}  // namespace
}  // namespace baton::engine
