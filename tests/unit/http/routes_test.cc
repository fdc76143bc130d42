// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/routes.h"

#include <gtest/gtest.h>

namespace baton::http {
namespace {

Routes routes() {
  const auto nothing = [](Call) -> awaitable<void> { co_return; };
  return Routes({{"POST", "/v1/chat", Access::Key, nothing},
                 {"GET", "/v1/models", Access::Key, nothing},
                 {"GET", "/v1/models/", Access::Key, nothing},
                 {"GET", "/both", Access::Open, nothing},
                 {"POST", "/both", Access::Key, nothing}});
}

TEST(Routes, FindByMethodAndPath) {
  const Routes all = routes();
  const struct {
    const char* method;
    const char* path;
    const char* found_method;
    const char* found_path;
  } cases[] = {
      {"POST", "/v1/chat", "POST", "/v1/chat"},
      {"GET", "/v1/models", "GET", "/v1/models"},
      {"HEAD", "/v1/models", "GET", "/v1/models"},
      {"GET", "/v1/models/x", "GET", "/v1/models/"},
      {"GET", "/v1/models/org/name", "GET", "/v1/models/"},
      {"GET", "/both", "GET", "/both"},
      {"POST", "/both", "POST", "/both"},
  };
  for (const auto& c : cases) {
    const auto found = all.find(c.method, c.path);
    ASSERT_TRUE(found) << c.method << " " << c.path;
    EXPECT_EQ((*found)->method, c.found_method) << c.path;
    EXPECT_EQ((*found)->path, c.found_path) << c.path;
  }
}

TEST(Routes, TellAnUnknownPathFromAWrongMethod) {
  const Routes all = routes();
  for (const char* path : {"/", "", "/v1/models/", "/v1/chat/", "/v1/chat/x", "/V1/chat"}) {
    const auto found = all.find("GET", path);
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error().code(), Errc::NotFound) << path;
  }
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "post", "OPTIONS"}) {
    const auto found = all.find(method, "/v1/chat");
    ASSERT_FALSE(found) << method;
    EXPECT_EQ(found.error().code(), Errc::MethodNotAllowed) << method;
  }
}

TEST(Routes, NameTheMethodsOfAPath) {
  const Routes all = routes();
  EXPECT_EQ(all.allowed_methods("/v1/chat"), "POST, OPTIONS");
  EXPECT_EQ(all.allowed_methods("/v1/models/x"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(all.allowed_methods("/both"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(all.allowed_methods("/nothing"), "");
}

}  // namespace
}  // namespace baton::http
