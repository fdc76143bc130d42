// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/api_keys.h"

#include "unit/config/parsing.h"

#include <string>

namespace baton::config {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ApiKeys, AreNeverShown) {
  const std::string secret = "sk-very-secret";
  for (const std::string& text :
       {"api_keys: " + secret, "api_keys: [\"" + secret + " with blank\"]",
        "api_keys: [[" + secret + "]]", "api_keys: {" + secret + ": 1, " + secret + ": 2}"}) {
    const auto problems = refused(with_fleet(text));
    EXPECT_THAT(problems, ElementsAre(StartsWith("baton.yaml:1: api_keys")));
    EXPECT_THAT(problems, Not(Contains(HasSubstr("secret"))));
  }
}

TEST(ApiKeys, AnEmptyListIsRefusedBecauseItWouldLetEverybodyIn) {
  EXPECT_THAT(refused(with_fleet("api_keys: []")), says("baton.yaml:1: api_keys", "is empty"));
  EXPECT_THAT(refused(with_fleet("api_keys: ['']")), says("baton.yaml:1: api_keys[0]", "visible"));
}

TEST(ApiKeys, ComeFromAFileToo) {
  const TemporaryFile file("# ours\nsk-a\n\n  sk-b \r\n#sk-c\nsk-d");
  EXPECT_THAT(accepted(with_fleet("api_keys: [sk-0]\napi_keys_file: " + file.path())).api_keys,
              ElementsAre("sk-0", "sk-a", "sk-b", "sk-d"));
}

TEST(ApiKeys, AFileThatGivesNoneIsRefused) {
  const TemporaryFile empty("# nothing yet\n");
  EXPECT_THAT(refused(with_fleet("api_keys_file: " + empty.path())),
              says("baton.yaml:1: api_keys_file", "without a key"));
  EXPECT_THAT(refused(with_fleet("api_keys_file: /nonexistent/keys")),
              says("baton.yaml:1: api_keys_file", "cannot read '/nonexistent/keys'"));
  EXPECT_THAT(refused(with_fleet("api_keys_file: /dev/zero")),
              says("baton.yaml:1: api_keys_file", "cannot read"));
  const TemporaryFile odd("sk-a\nsecret with blank\n");
  const auto problems = refused(with_fleet("api_keys_file: " + odd.path()));
  EXPECT_THAT(problems, says(odd.path() + ":2", "visible ASCII"));
  EXPECT_THAT(problems, Not(Contains(HasSubstr("secret"))));
}

TEST(AdminKeys, AreReadTheSameWay) {
  const TemporaryFile file("sk-b\n");
  const std::string admin = "admin: 127.0.0.1:8081\n";
  const Config config = accepted(admin + "admin_keys: [sk-a]\nadmin_keys_file: " + file.path());
  EXPECT_THAT(config.admin_keys, ElementsAre("sk-a", "sk-b"));
  EXPECT_TRUE(config.api_keys.empty());
  EXPECT_THAT(refused(admin + "admin_keys: []"),
              says("baton.yaml:2: admin_keys", "to be asked from loopback only"));
}

TEST(ApiKeys, AreVisibleAsciiToItsEnds) {
  EXPECT_THAT(accepted(with_fleet("api_keys: ['!', '~', 'a:b']")).api_keys,
              ElementsAre("!", "~", "a:b"));
  for (const char* key : {"'a b'", "\"a\\x7f\"", "ä", "\"a\\tb\"", "~", "[a]"}) {
    EXPECT_THAT(refused(with_fleet(std::string("api_keys: [good, ") + key + "]")),
                ElementsAre("baton.yaml:1: api_keys[1]: must be text of visible ASCII characters "
                            "without blanks"))
        << key;
  }
}

TEST(ApiKeys, EachWrongOneIsNamedByItsPlace) {
  EXPECT_THAT(refused(with_fleet("api_keys:\n  - a b\n  - good\n  - ''\n")),
              ElementsAre(StartsWith("baton.yaml:2: api_keys[0]: "),
                          StartsWith("baton.yaml:4: api_keys[2]: ")));
}

TEST(ApiKeys, LinesOfAFileMayEndInAnyWay) {
  for (const std::string text : {"sk-a\nsk-b", "sk-a\nsk-b\n", "sk-a\r\nsk-b\r\n",
                                 "\n\n\tsk-a\t\n # no\n sk-b \n\n", "sk-a\n\r\nsk-b"}) {
    const TemporaryFile file(text);
    EXPECT_THAT(accepted(with_fleet("api_keys_file: " + file.path())).api_keys,
                ElementsAre("sk-a", "sk-b"))
        << text;
  }
}

TEST(ApiKeys, ACommentIsAWholeLine) {
  const TemporaryFile file("sk-a#b\n");
  EXPECT_THAT(accepted(with_fleet("api_keys_file: " + file.path())).api_keys,
              ElementsAre("sk-a#b"));
  const TemporaryFile behind("sk-a # ours\n");
  EXPECT_THAT(refused(with_fleet("api_keys_file: " + behind.path())),
              ElementsAre(behind.path() + ":1: a key must be visible ASCII characters without "
                                          "blanks"));
}

TEST(ApiKeys, TheFirstWrongLineOfAFileIsNamed) {
  const TemporaryFile file("# a\nsk-a\n\nb b\nc c\n");
  EXPECT_THAT(refused(with_fleet("api_keys_file: " + file.path())),
              ElementsAre(StartsWith(file.path() + ":4: ")));
}

TEST(ApiKeys, FilesOfNothingAreRefusedAtTheirFlag) {
  for (const std::string text : {"", "\n", "# a\n#b", "   \n\t\n"}) {
    const TemporaryFile file(text);
    EXPECT_THAT(refused(kFleet, {{"api_keys_file", file.path()}}),
                ElementsAre("command line: --api-keys-file: names a file without a key; add one, "
                            "or remove it to let all clients in"));
  }
}

TEST(AdminKeys, InAFileNeedAnAdminAddressToo) {
  const TemporaryFile file("sk-a\n");
  EXPECT_THAT(refused(with_fleet("admin_keys_file: " + file.path())),
              ElementsAre("baton.yaml:1: admin_keys_file: has no effect without an admin address; "
                          "add admin or remove it"));
}

}  // namespace
}  // namespace baton::config
