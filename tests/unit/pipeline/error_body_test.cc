// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/error_body.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::pipeline {
namespace {

using Json = nlohmann::json;

TEST(ErrorBody, HasTheShapeOfOpenAisErrors) {
  const Error error =
      Error(Errc::ModelNotFound, "the model \"x\"\ndoes not exist").with_param("model");
  EXPECT_EQ(
      Json::parse(error_body(error)),
      Json::parse(R"({"error":{"message":"the model \"x\"\ndoes not exist",)"
                  R"("type":"invalid_request_error","param":"model","code":"model_not_found"}})"));
}

TEST(ErrorBody, IsJsonForEveryErrorAndEveryMessage) {
  for (const ErrorInfo& info : error_table()) {
    const Json body = Json::parse(error_body(Error(info.code, "bytes \xff\x01 that are no text")));
    EXPECT_EQ(body["error"]["type"], std::string(info.type));
    EXPECT_EQ(body["error"]["code"], std::string(info.label));
    EXPECT_TRUE(body["error"]["param"].is_null());
  }
}

TEST(ErrorBody, HasFiguresWhereThereAreAny) {
  const Error error = Error(Errc::QueueFull, "full").with_figures(R"({"current":2,"limit":3})");
  EXPECT_EQ(Json::parse(error_body(error))["error"]["details"],
            Json::parse(R"({"current":2,"limit":3})"));
  EXPECT_FALSE(Json::parse(error_body(Error(Errc::Internal, "m")))["error"].contains("details"));
}

TEST(ErrorBody, IsTheEnginesOwnWhereItRefusedTheRequest) {
  Error error(Errc::EngineRejected, "no");
  error.with_status(422).with_reply({.content_type = "text/plain", .body = "no { json"});
  EXPECT_EQ(error_body(error), "no { json");
  EXPECT_EQ(error_headers(error).find("content-type"), "text/plain");
  EXPECT_EQ(Json::parse(error_event(error).substr(6))["error"]["code"], "engine_rejected")
      << "a stream that has begun is ended in Baton's shape";
  error.with_reply({.content_type = "", .body = "x"});
  EXPECT_FALSE(error_headers(error).find("content-type"));
}

TEST(ErrorEvent, IsOneEventWhateverTheMessage) {
  const Error error(Errc::EngineFailed, "two\n\nlines");
  const std::string event = error_event(error);
  EXPECT_EQ(event, "data: " + error_body(error) + "\n\n");
  EXPECT_EQ(event.find('\n'), event.size() - 2);
}

TEST(ErrorHeaders, TellWhenToComeBackWhereWaitingHelps) {
  const Error error(Errc::EngineFailed, "m");
  EXPECT_EQ(error_headers(error).find("content-type"), "application/json");
  EXPECT_FALSE(error_headers(error).find("retry-after"));
  Error busy(Errc::EngineOverloaded, "m");
  busy.with_retry_after(std::chrono::seconds(17));
  EXPECT_EQ(error_headers(busy).find("retry-after"), "17");
}

}  // namespace
}  // namespace baton::pipeline
