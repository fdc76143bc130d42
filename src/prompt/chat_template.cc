// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/chat_template.h"

#include "prompt/file_text.h"
#include "prompt/messages.h"
#include "wire/json_array.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace baton::prompt {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTemplates = 64;

// The text of a template, and the file it came from for messages.
struct Source {
  std::string text;
  std::string file;
};
using TemplateSources = std::map<std::string, Source, std::less<>>;  // by name

Result<void> add_file(const fs::path& path, std::string name, TemplateSources& sources) {
  auto text = file_text(path);
  if (!text) return fail(text.error());
  if (*text) sources.insert_or_assign(std::move(name), Source{std::move(**text), path.string()});
  return {};
}

// chat_template.jinja and those in additional_chat_templates/.
Result<TemplateSources> files_of(const fs::path& folder) {
  TemplateSources sources;
  if (auto added = add_file(folder / "chat_template.jinja", "default", sources); !added) {
    return fail(added.error());
  }
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", problem)) {
    if (entry.path().extension() != ".jinja" || sources.size() >= kMostTemplates) continue;
    auto added = add_file(entry.path(), entry.path().stem().string(), sources);
    if (!added) return fail(added.error());
  }
  return sources;
}

// The member `chat_template` of a JSON file: a text, or a list of {name, template}.
Result<TemplateSources> members_of(const fs::path& path) {
  TemplateSources sources;
  const auto text = file_text(path);
  if (!text) return fail(text.error());
  if (!*text) return sources;
  const auto object = wire::JsonObject::parse(**text);
  if (!object) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: {}", path.string(), object.error().message()));
  }
  if (auto only = object->find_string("chat_template")) {
    sources.emplace("default", Source{std::move(*only), path.string()});
    return sources;
  }
  const auto list = object->find("chat_template");
  if (!list || *list == "null") return sources;
  for (const std::string_view element : wire::elements(*list, kMostTemplates)) {
    const auto entry = wire::JsonObject::within(element);
    auto name = entry ? entry->find_string("name") : std::nullopt;
    auto body = entry ? entry->find_string("template") : std::nullopt;
    if (!name || !body) {
      return fail(Errc::InvalidRequest,
                  fmt::format("{}: each chat_template needs a name and a template", path.string()));
    }
    sources.insert_or_assign(std::move(*name), Source{std::move(*body), path.string()});
  }
  if (sources.empty()) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: chat_template is neither a text nor a list of named templates",
                            path.string()));
  }
  return sources;
}

const Source* find(const TemplateSources& sources, std::string_view name) {
  const auto at = sources.find(name);
  return at == sources.end() ? nullptr : &at->second;
}

// An empty template where there is no source.
Result<ChatTemplate> parsed(const Source* source) {
  if (!source) return ChatTemplate{};
  auto program = jinja::Template::parse(source->text);
  if (!program) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: {}", source->file, program.error().message()));
  }
  return ChatTemplate{.program = std::move(*program),
                      .formats = {content_format_of(source->text, ContentSearch::Members),
                                  content_format_of(source->text, ContentSearch::Names),
                                  content_format_of(source->text, ContentSearch::Macros)},
                      .names_developers = names_developers(source->text),
                      .names_content = source->text.contains("content")};
}

}  // namespace

Result<ChatTemplates> ChatTemplates::load(const fs::path& folder, const fs::path& file) {
  TemplateSources own;
  TemplateSources processor;
  if (!file.empty()) {
    if (auto added = add_file(file, "default", own); !added) return fail(added.error());
    if (own.empty()) {
      return fail(Errc::InvalidRequest, fmt::format("{} does not exist", file.string()));
    }
  } else {
    auto files = files_of(folder);
    if (!files) return fail(files.error());
    own = std::move(*files);
    const bool in_file = own.contains("default");
    if (own.empty()) {
      auto members = members_of(folder / "tokenizer_config.json");
      if (!members) return fail(members.error());
      own = std::move(*members);
    }
    if (!in_file) {
      auto members = members_of(folder / "chat_template.json");
      if (!members) return fail(members.error());
      processor = std::move(*members);
    }
  }

  const Source* const usual = find(own, "default");
  const Source* const multimodal = find(processor, "default");
  const Source* const tool_use = find(own, "tool_use");
  auto plain = parsed(multimodal ? multimodal : usual);
  if (!plain) return fail(plain.error());
  ChatTemplates templates;
  templates.plain_ = std::move(*plain);
  const Source* const other = tool_use ? tool_use : usual;
  if (other == usual && !multimodal) {
    templates.with_tools_ = templates.plain_;
    return templates;
  }
  auto with_tools = parsed(other ? other : multimodal);
  if (!with_tools) return fail(with_tools.error());
  templates.with_tools_ = std::move(*with_tools);
  return templates;
}

const ChatTemplate* ChatTemplates::choose(WithTools tools) const {
  const ChatTemplate& chosen = tools == WithTools::Yes ? with_tools_ : plain_;
  return chosen.program ? &chosen : nullptr;
}

}  // namespace baton::prompt
