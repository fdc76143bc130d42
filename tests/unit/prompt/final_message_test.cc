// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/final_message.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

constexpr const char* kTag = "CONTINUE_FINAL_MESSAGE_TAG ";

TEST(FinalMessage, IsTaggedBehindItsText) {
  jinja::List messages = from_json(R"([{"role":"user","content":"u"},
                                       {"role":"assistant","content":" a ","name":"n"}])")
                             .as_list();
  EXPECT_EQ(tag_final_message(messages).value(), " a ");
  EXPECT_EQ(shown(messages), std::string(R"([{"role":"user","content":"u"},)") +
                                 R"({"role":"assistant","content":" a )" + kTag +
                                 R"(","name":"n"}])");
}

TEST(FinalMessage, IsTaggedBehindItsLastTextPart) {
  jinja::List messages = from_json(R"([{"role":"assistant","content":[{"type":"text","text":"a"},
                     {"type":"text","text":"b"},{"type":"image"}]}])")
                             .as_list();
  EXPECT_EQ(tag_final_message(messages).value(), "b");
  EXPECT_EQ(shown(messages), std::string(R"([{"role":"assistant","content":)") +
                                 R"([{"type":"text","text":"a"},{"type":"text","text":"b)" + kTag +
                                 R"("},{"type":"image"}]}])");
}

TEST(FinalMessage, MustHaveText) {
  for (const char* const json : {"[]", R"([{"role":"assistant","content":[]}])",
                                 R"([{"role":"assistant","content":[{"type":"image"}]}])"}) {
    jinja::List messages = from_json(json).as_list();
    const auto tagged = tag_final_message(messages);
    ASSERT_FALSE(tagged) << json;
    EXPECT_EQ(tagged.error().code(), Errc::InvalidRequest);
  }
}

TEST(FinalMessage, EndsWhereItsTagBegins) {
  const std::string tag = kTag;
  EXPECT_EQ(cut_at_tag("<a>half " + tag + "</a>\n", "half ").value(), "<a>half ");
  EXPECT_EQ(cut_at_tag("<a>" + tag + "</a>", "").value(), "<a>");
  // The last tag counts: the text may hold one itself.
  EXPECT_EQ(cut_at_tag(tag + "x" + tag + "</a>", tag + "x").value(), tag + "x");
}

TEST(FinalMessage, LosesTheSpaceThatTheTemplateTrimmed) {
  const std::string trimmed = "CONTINUE_FINAL_MESSAGE_TAG";
  EXPECT_EQ(cut_at_tag("<a>half \xC2\xA0\n" + trimmed + "</a>", "half \xC2\xA0\n").value(),
            "<a>half");
}

TEST(FinalMessage, MustBeInWhatIsRendered) {
  for (const char* const rendered :
       {"<a>other CONTINUE_FINAL_MESSAGE_TAG </a>", "<a>half</a>", ""}) {
    const auto cut = cut_at_tag(rendered, "half");
    ASSERT_FALSE(cut) << rendered;
    EXPECT_EQ(cut.error().code(), Errc::InvalidRequest);
  }
}

}  // namespace
}  // namespace baton::prompt
