// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/content_parts.h"

#include "prompt/members.h"
#include "prompt/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

// A part that is not text: its type, the name the template gets, and the phrase for messages.
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

// Members of a part that vLLM knows, of which the template sees none but the text. Others reach it.
constexpr std::string_view kPartMembers[] = {"audio_embeds",
                                             "audio_url",
                                             "closed",
                                             "data",
                                             "file",
                                             "image_embeds",
                                             "image_pil",
                                             "image_url",
                                             "input_audio",
                                             "name",
                                             "prompt_cache_breakpoint",
                                             "refusal",
                                             "text",
                                             "thinking",
                                             "type",
                                             "uuid",
                                             "video_embeds",
                                             "video_url"};

constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

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
  explicit PartReader(const ContentShape& shape) : shape_(shape) {}

  Result<void> add(const Value& part);
  Content finish() &&;

 private:
  std::string place(std::string_view member) const {
    return fmt::format("messages[{}].content[{}]{}", shape_.message, seen_ - 1, member);
  }
  bool in_parts() const { return shape_.format == ContentFormat::Parts; }
  // `source` is the part it stands in, where it stands in one.
  void add_text(Value text, const Dict* source = nullptr) {
    if (in_parts()) {
      Value part = text_part(std::move(text));
      if (source && shape_.rules.keeps_part_members) part = with_other_members(part, *source);
      parts_.push_back(std::move(part));
    } else if (text.is_string() && !text.as_string().empty()) {  // an empty one adds no line
      parts_.push_back(std::move(text));
    }
  }
  void note(std::string reason) {
    if (inexact_.empty()) inexact_ = std::move(reason);
  }
  static Value with_other_members(const Value& part, const Dict& source);
  bool drops(std::string_view text, std::optional<Value>& rest) const;
  Result<void> add_text_of(const Dict& part, const TextKind& kind);
  void add_media(const MediaKind& kind);
  void add_reference(const Dict& part);

  const ContentShape& shape_;
  std::size_t seen_ = 0;
  List parts_;
  std::string inexact_;
};

Value PartReader::with_other_members(const Value& part, const Dict& source) {
  const auto known = [](const Value& key) {
    return std::ranges::find(kPartMembers, key.as_string()) != std::end(kPartMembers);
  };
  if (std::ranges::all_of(source, [&](const auto& member) { return known(member.key); }))
    return part;
  Dict out = part.as_dict();
  for (const auto& [key, value] : source) {
    if (!known(key)) out.set(key, value);
  }
  return out;
}

// Whether a system message's text part is left out, or shortened to `rest`.
bool PartReader::drops(std::string_view text, std::optional<Value>& rest) const {
  if (!shape_.of_system || !shape_.rules.drops_billing_header) return false;
  const auto left = without_billing_header(text);
  if (!left) return false;
  if (left->empty()) return true;
  rest = Value(*left);
  return false;
}

Result<void> PartReader::add_text_of(const Dict& part, const TextKind& kind) {
  const Value* const text = find_present(part, kind.member);
  if (!text) {
    if (!kind.skipped_without_text) add_text(Value::none(), &part);
    return {};
  }
  if (!text->is_string()) return refuse(place(fmt::format(".{}", kind.member)), "must be a string");
  std::optional<Value> rest;
  if (kind.type == "text" && drops(text->as_string(), rest)) return {};
  add_text(rest ? *std::move(rest) : *text, &part);
  return {};
}

void PartReader::add_media(const MediaKind& kind) {
  note(fmt::format("messages[{}] has {}", shape_.message, kind.phrase));
  if (!in_parts()) return;
  Dict part;
  part.set("type"sv, Value(kind.modality));
  parts_.push_back(std::move(part));
}

void PartReader::add_reference(const Dict& part) {
  const Value* const name = part.find("name"sv);
  if (!in_parts()) return add_text(name ? *name : Value::none());
  Dict reference;
  reference.set("type"sv, Value("tool_reference"));
  reference.set("name"sv, name ? *name : Value::none());
  parts_.push_back(std::move(reference));
}

Result<void> PartReader::add(const Value& value) {
  ++seen_;
  if (value.is_string()) {
    std::optional<Value> rest;
    if (drops(value.as_string(), rest)) return {};
    add_text(rest ? *std::move(rest) : value);
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
  if (in_parts()) parts_.push_back(value);
  return {};
}

Content PartReader::finish() && {
  if (in_parts()) return {Value(std::move(parts_)), std::move(inexact_)};
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

std::optional<std::string_view> without_billing_header(std::string_view text) {
  if (!text.starts_with(kBillingHeader)) return std::nullopt;
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

Result<Content> content_of(const Value* content, const ContentShape& shape) {
  const bool absent = !content || content->is_none();
  if (absent || content->is_string()) {
    Value text = absent ? Value("") : *content;
    const bool header = shape.of_system && shape.rules.drops_billing_header;
    if (const auto rest = header ? without_billing_header(text.as_string()) : std::nullopt)
      text = Value(*rest);
    if (shape.format == ContentFormat::Text || !shape.rules.texts_in_parts)
      return Content{std::move(text)};
    const bool nothing = absent || (text.as_string().empty() && !content->as_string().empty());
    return Content{nothing ? Value(List()) : in_parts(std::move(text))};
  }
  if (!content->is_list()) {
    return refuse(fmt::format("messages[{}].content", shape.message),
                  "must be a string, a list of parts, or null");
  }
  PartReader reader(shape);
  for (const Value& part : content->as_list()) {
    if (auto added = reader.add(part); !added) return fail(added.error());
  }
  return std::move(reader).finish();
}

}  // namespace baton::prompt
