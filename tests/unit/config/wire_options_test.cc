// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/wire_options.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace baton::config
