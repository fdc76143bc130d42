// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/content_parts.h"

#include "prompt/members.h"
#include "prompt/refusal.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace baton::prompt {
namespace {

using namespace std::string_view_literals;

using jinja::Dict;
using jinja::List;
using jinja::Value;

// Which member of a part holds its text.
struct TextKind {
  std::string_view type;
  std::string_view member;
  bool skipped_without_text;
};
constexpr TextKind kTextKinds[] = {{"text", "text", true},
                                   {"input_text", "text", false},
                                   {"output_text", "text", false},
                                   {"refusal", "refusal", true},
                                   {"thinking", "thinking", false}};

// What the template is told of a part that is not text, and how it is called in a sentence.
struct MediaKind {
  std::string_view type;
  std::string_view modality;
  std::string_view phrase;
};
constexpr MediaKind kMediaKinds[] = {
    {"image_url", "image", "an image"}, {"input_image", "image", "an image"},
    {"image_pil", "image", "an image"}, {"image_embeds", "image", "an image"},
    {"image", "image", "an image"},     {"audio_embeds", "audio", "audio"},
    {"audio_url", "audio", "audio"},    {"input_audio", "audio", "audio"},
    {"audio", "audio", "audio"},        {"video_url", "video", "a video"},
    {"video", "video", "a video"},      {"prompt_embeds", "prompt_embeds", "embeddings"},
    {"file", "file", "a file"},
};

Value text_part(Value text) {
  static const Value kType("type");
  static const Value kText("text");
  Dict part;
  part.reserve(2);
  part.set(kType, kText);
  part.set(kText, std::move(text));
  return part;
}

// Gathers the parts of one message.
class PartReader {
 public:
  PartReader(ContentFormat format, std::size_t message) : format_(format), message_(message) {}

  Result<void> add(const Value& part);
  Content finish() &&;

 private:
  std::string place(std::string_view member) const {
    return fmt::format("messages[{}].content[{}]{}", message_, seen_ - 1, member);
  }
  void add_text(Value text) {
    if (format_ == ContentFormat::Parts) {
      parts_.push_back(text_part(std::move(text)));
    } else if (text.is_string() && !text.as_string().empty()) {  // an empty one adds no line
      parts_.push_back(std::move(text));
    }
  }
  void note(std::string reason) {
    if (inexact_.empty()) inexact_ = std::move(reason);
  }
  Result<void> add_text_of(const Dict& part, const TextKind& kind);
  void add_media(const MediaKind& kind);
  void add_reference(const Dict& part);

  ContentFormat format_;
  std::size_t message_;
  std::size_t seen_ = 0;
  List parts_;
  std::string inexact_;
};

Result<void> PartReader::add_text_of(const Dict& part, const TextKind& kind) {
  const Value* const text = find_present(part, kind.member);
  if (!text) {
    if (!kind.skipped_without_text) add_text(Value::none());
    return {};
  }
  if (!text->is_string()) return refuse(place(fmt::format(".{}", kind.member)), "must be a string");
  add_text(*text);
  return {};
}

void PartReader::add_media(const MediaKind& kind) {
  note(fmt::format("messages[{}] has {}", message_, kind.phrase));
  if (format_ != ContentFormat::Parts) return;
  Dict part;
  part.set("type"sv, Value(kind.modality));
  parts_.push_back(std::move(part));
}

void PartReader::add_reference(const Dict& part) {
  const Value* const name = part.find("name"sv);
  if (format_ != ContentFormat::Parts) return add_text(name ? *name : Value::none());
  Dict reference;
  reference.set("type"sv, Value("tool_reference"));
  reference.set("name"sv, name ? *name : Value::none());
  parts_.push_back(std::move(reference));
}

Result<void> PartReader::add(const Value& value) {
  ++seen_;
  if (value.is_string()) {
    add_text(value);
    return {};
  }
  if (!value.is_dict()) return refuse(place(""), "must be an object or a string");
  const Dict& part = value.as_dict();
  const Value* const type = find_present(part, "type");
  if (!type) {
    // A part may name its medium by the member alone.
    for (const MediaKind& kind : kMediaKinds) {
      if (part.find(kind.type)) {
        add_media(kind);
        return {};
      }
    }
    return refuse(place(".type"), "is missing");
  }
  if (!type->is_string()) return refuse(place(".type"), "must be a string");
  const std::string_view name = type->as_string();
  for (const TextKind& kind : kTextKinds) {
    if (name == kind.type) return add_text_of(part, kind);
  }
  for (const MediaKind& kind : kMediaKinds) {
    if (name == kind.type) {
      add_media(kind);
      return {};
    }
  }
  if (name == "tool_reference") {
    add_reference(part);
    return {};
  }
  // An engine newer than Baton may know it: that engine has the last word.
  note(fmt::format("{} has a type that Baton does not know ({})", place(""), name));
  if (format_ == ContentFormat::Parts) parts_.push_back(value);
  return {};
}

Content PartReader::finish() && {
  if (format_ == ContentFormat::Parts) return {Value(std::move(parts_)), std::move(inexact_)};
  if (parts_.size() == 1) return {std::move(parts_.front()), std::move(inexact_)};
  std::string joined;
  for (const Value& text : parts_) {
    if (!joined.empty()) joined += '\n';
    joined += text.as_string();
  }
  return {Value(std::move(joined)), std::move(inexact_)};
}

}  // namespace

Value in_parts(Value text) {
  List parts;
  parts.push_back(text_part(std::move(text)));
  return parts;
}

Result<Content> content_of(const Value* content, ContentFormat format, std::size_t index) {
  const bool absent = !content || content->is_none();
  if (absent || content->is_string()) {
    if (format == ContentFormat::Text) return Content{absent ? Value("") : *content};
    return Content{absent ? Value(List()) : in_parts(*content)};
  }
  if (!content->is_list()) {
    return refuse(fmt::format("messages[{}].content", index),
                  "must be a string, a list of parts, or null");
  }
  PartReader reader(format, index);
  for (const Value& part : content->as_list()) {
    if (auto added = reader.add(part); !added) return fail(added.error());
  }
  return std::move(reader).finish();
}

}  // namespace baton::prompt
