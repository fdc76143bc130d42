// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/wire_options.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::config {
namespace {

using testing::ElementsAre;

TEST(StrippedFields, AreWhateverNoRequestNeeds) {
  EXPECT_THAT(
      accepted(with_fleet("strip_client_fields: [priority, extra_key]")).strip_client_fields,
      ElementsAre("priority", "extra_key"));
  for (const char* needed : {"model", "messages", "prompt", "stream"}) {
    EXPECT_THAT(refused(with_fleet(fmt::format("strip_client_fields: [a, {}]", needed))),
                says("baton.yaml:1: strip_client_fields[1]", "every request needs it"));
  }
}

TEST(StrippedHeaders, AreNamesOrBeginnings) {
  EXPECT_THAT(accepted(with_fleet("strip_client_headers: [X-Smg-Routing-Key, 'x-sglext-*']"))
                  .strip_client_headers,
              ElementsAre("x-smg-routing-key", "x-sglext-*"));
  for (const char* broken : {"'*'", "'x-*-y'", "'a b'", "'x:'"}) {
    EXPECT_THAT(refused(with_fleet(fmt::format("strip_client_headers: [{}]", broken))),
                says("baton.yaml:1: strip_client_headers[0]", "is not the name of a header"));
  }
}

TEST(TrtllmAuth, IsReadFromAFileThatHoldsTheKeyAlone) {
  const TemporaryFile secret("s3cret\n");
  EXPECT_EQ(
      accepted(with_fleet(fmt::format("trtllm: {{auth_key_file: {}}}", secret.path()))).trtllm_auth,
      (model::TrtllmAuth{"s3cret", model::SignedPart::Fields}));
  EXPECT_EQ(accepted(with_fleet(fmt::format("trtllm: {{auth_key_file: {}, auth_payload: params}}",
                                            secret.path())))
                .trtllm_auth,
            (model::TrtllmAuth{"s3cret", model::SignedPart::Params}));
  const TemporaryFile empty("\n");
  EXPECT_THAT(refused(with_fleet(fmt::format("trtllm: {{auth_key_file: {}}}", empty.path()))),
              says("baton.yaml:1: trtllm.auth_key_file", "without a key"));
  EXPECT_EQ(accepted(with_fleet("trtllm: {auth_payload: params}")).trtllm_auth.key, "");
  EXPECT_THAT(refused(with_fleet(
                  fmt::format("trtllm: {{auth_key_file: {}, auth_payload: all}}", secret.path()))),
              says("baton.yaml:1: trtllm.auth_payload", "write fields or params"));
}

TEST(StrippedFields, AreNamedAsTheyStand) {
  EXPECT_THAT(accepted(with_fleet("strip_client_fields: [Model, ' a', 'x.y']")).strip_client_fields,
              ElementsAre("Model", " a", "x.y"));  // bodies know the case of letters
  EXPECT_THAT(refused(with_fleet("strip_client_fields: ['']")),
              ElementsAre("baton.yaml:1: strip_client_fields[0]: is empty; name a member of the "
                          "body, or remove it"));
  EXPECT_THAT(refused(with_fleet("strip_client_fields: [{a: b}]")),
              says("baton.yaml:1: strip_client_fields[0]", "must be a single value"));
  EXPECT_THAT(refused(with_fleet("strip_client_fields: priority")),
              says("baton.yaml:1: strip_client_fields", "must be a list"));
}

TEST(StrippedFields, MayBeNone) {
  EXPECT_THAT(accepted(with_fleet("strip_client_fields: []")).strip_client_fields, ElementsAre());
}

TEST(StrippedHeaders, AreLettersDigitsAndDashes) {
  EXPECT_THAT(accepted(with_fleet("strip_client_headers: [X_1, 'a*', 9]")).strip_client_headers,
              ElementsAre("x_1", "a*", "9"));
  for (const char* name : {"''", "'**'", "'a/b'", "ä", "'x-a, x-b'"}) {
    EXPECT_THAT(refused(with_fleet(fmt::format("strip_client_headers: [ok, {}]", name))),
                says("baton.yaml:1: strip_client_headers[1]",
                     "is not the name of a header; write letters, digits and -, with a * at the "
                     "end"))
        << name;
  }
}

TEST(TrtllmAuth, ThatCannotBeReadIsNamedWithoutItsKey) {
  EXPECT_THAT(refused(with_fleet("trtllm: {auth_key_file: /nonexistent/key}")),
              says("baton.yaml:1: trtllm.auth_key_file", "cannot read '/nonexistent/key'"));
  const TemporaryFile several("one\ntwo\r\n\n");
  EXPECT_EQ(accepted(with_fleet("trtllm: {auth_key_file: " + several.path() + "}")).trtllm_auth.key,
            "one\ntwo");  // bytes, of which only the last line ends go
}

}  // namespace
}  // namespace baton::config
