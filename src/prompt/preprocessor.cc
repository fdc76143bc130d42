// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/preprocessor.h"

#include "core/regular_file.h"
#include "libs/jinja/template.h"
#include "prompt/chat_request.h"
#include "prompt/chat_template.h"
#include "prompt/completion_prompts.h"
#include "prompt/exactness.h"
#include "prompt/final_message.h"
#include "prompt/library_errors.h"
#include "prompt/members.h"
#include "prompt/messages.h"
#include "prompt/model_facts.h"
#include "prompt/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace baton::prompt {
namespace {

// A prompt that is too long for Baton's tokenizer may still suit the engine's.
Result<Prepared> failed(Error error) {
  if (error.code() != Errc::PayloadTooLarge) return fail(std::move(error));
  return Prepared{.prompts = {}, .inexact = error.message()};
}

// A rendered request, and the engines it is exact for.
struct Rendered {
  Result<std::string> text;
  Exactness exactness;
  bool too_much = false;  // for the effort
};

// A step takes about a tenth of a microsecond, and tokenizing a millisecond for fifty kilobytes.
constexpr std::size_t kLittleSteps = 4096;
constexpr std::size_t kLittleOutput = 24UZ << 10;

// Templates rarely add more around a message and around the whole chat than these and their JSON.
constexpr std::size_t kAroundMessage = 64;
constexpr std::size_t kAroundAll = 1024;

std::size_t expected_bytes(const ChatRequest& request) {
  const std::size_t messages = request.messages.is_list() ? request.messages.as_list().size() : 0;
  return request.message_bytes + messages * kAroundMessage + kAroundAll;
}

// The folder may be written by others while Baton serves: only regular files are read.
std::expected<std::optional<std::string>, std::string> read_model_file(
    const std::filesystem::path& path, std::size_t most) {
  auto text = read_regular_file(path.string(), most);
  if (!text) return std::unexpected(text.error().message());
  return *std::move(text);
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer(
    const std::filesystem::path& folder, tokenizer::Transformers release) {
  return as_result(tokenizer::Tokenizer::load(folder, release, read_model_file));
}

jinja::Limits limits_of(Effort effort) {
  jinja::Limits limits;
  if (effort == Effort::Little) {
    limits.steps = kLittleSteps;
    limits.output_bytes = kLittleOutput;
  }
  return limits;
}

}  // namespace

struct Preprocessor::Parts {
  // A tokenizer as one release of transformers reads the files, and the cache of its work.
  struct Reading {
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    std::unique_ptr<tokenizer::SegmentCache> cache = nullptr;
  };
  Reading current;
  Reading earlier;  // without a tokenizer where it reads them no differently
  ChatTemplates templates;
  ModelFacts facts;
  jinja::Dict special_tokens = {};  // as variables of a template

  const Reading& reading(const Rules& rules) const {
    return rules.transformers == tokenizer::Transformers::V4 && earlier.tokenizer ? earlier
                                                                                  : current;
  }
  Result<Rendered> render(const ChatRequest& request, const wire::JsonObject& body,
                          const RenderContext& context) const;
  Result<tokenizer::TokenIds> encode(std::string_view text, tokenizer::AddSpecial add_special,
                                     const RenderContext& context) const {
    const Reading& as = reading(context.rules);
    return as_result(as.tokenizer->encode(
        text, {.add_special = add_special,
               .cache = as.cache.get(),
               .stop = context.stop,
               .give_way = context.effort == Effort::Full ? tokenizer::GiveWay::Yes
                                                          : tokenizer::GiveWay::No}));
  }
  bool knows(tokenizer::TokenId id) const {
    return id < facts.vocabulary_size.value_or(0) || current.tokenizer->token(id).has_value();
  }
  Result<void> check(const tokenizer::TokenIds& ids) const {
    const auto unknown =
        std::ranges::find_if(ids, [&](tokenizer::TokenId id) { return !knows(id); });
    if (unknown == ids.end()) return {};
    return refuse("prompt",
                  fmt::format("has a token id that the model does not know: {}", *unknown));
  }
};

Result<Rendered> Preprocessor::Parts::render(const ChatRequest& request,
                                             const wire::JsonObject& body,
                                             const RenderContext& context) const {
  const bool tools = !request.tools.is_none();
  const ChatTemplate* const chosen = templates.choose(tools ? WithTools::Yes : WithTools::No);
  if (!chosen) {
    // The engines may have one of their own; if not, it is theirs to say so.
    constexpr std::string_view kNone = "the model's files have no chat template";
    return Rendered{
        fail(Errc::InvalidRequest, fmt::format("{}: name one with chat_template, or use "
                                               "/v1/completions",
                                               kNone)),
        {.inexact = request.inexact.empty() ? std::string(kNone) : request.inexact}};
  }
  auto conversation = conversation_of(request.messages,
                                      chosen->format(context.rules.content_search), context.rules);
  if (!conversation) return fail(conversation.error());
  Exactness exactness = exactness_of(request, *conversation, body);
  if (context.rules.developer_as_system && !chosen->names_developers)
    developers_to_system(conversation->messages);
  std::string final_text;
  if (request.continue_final_message) {
    if (context.rules.transformers == tokenizer::Transformers::V5 && !chosen->names_content)
      return refuse("continue_final_message", "cannot be kept: the chat template has no content");
    auto text = tag_final_message(conversation->messages);
    if (!text) return fail(text.error());
    final_text = std::move(*text);
  }
  bool crossed = false;
  auto text = as_result(chosen->program->render(
      template_variables(special_tokens, request, std::move(conversation->messages)),
      {.now = context.now,
       .stop = context.stop,
       .expected_bytes = expected_bytes(request),
       .limits = limits_of(context.effort),
       .crossed = &crossed}));
  if (text && request.continue_final_message) text = cut_at_tag(std::move(*text), final_text);
  return Rendered{std::move(text), std::move(exactness),
                  crossed && context.effort == Effort::Little};
}

Preprocessor::Preprocessor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Preprocessor::~Preprocessor() = default;

Result<std::shared_ptr<const Preprocessor>> Preprocessor::load(const Sources& sources) {
  auto tokenizer = load_tokenizer(sources.folder, tokenizer::Transformers::V5);
  if (!tokenizer) return fail(tokenizer.error());
  auto templates = ChatTemplates::load(sources.folder, sources.chat_template);
  if (!templates) return fail(templates.error());
  auto facts = model_facts(sources.folder);
  if (!facts) return fail(facts.error());
  auto parts = std::make_unique<Parts>(Parts{.current = {.tokenizer = std::move(*tokenizer)},
                                             .earlier = {},
                                             .templates = std::move(*templates),
                                             .facts = *facts});
  if (parts->current.tokenizer->differs_by_release()) {
    auto earlier = load_tokenizer(sources.folder, tokenizer::Transformers::V4);
    if (!earlier) return fail(earlier.error());
    parts->earlier.tokenizer = std::move(*earlier);
  }
  for (const auto& [name, token] : parts->current.tokenizer->special_tokens()) {
    parts->special_tokens.set(std::string_view(name), jinja::Value(token));
  }
  for (Parts::Reading* const one : {&parts->current, &parts->earlier}) {
    if (one->tokenizer && sources.cache_bytes > 0)
      one->cache = std::make_unique<tokenizer::SegmentCache>(sources.cache_bytes);
  }
  return std::shared_ptr<const Preprocessor>(new Preprocessor(std::move(parts)));
}

Result<Prepared> Preprocessor::chat(const wire::JsonObject& body,
                                    const RenderContext& context) const {
  auto request = chat_request(body, context.rules);
  if (!request) return fail(request.error());
  if (request->inexact.empty()) {
    if (parts_->facts.coded_renderer) {
      request->inexact = fmt::format("engines do not use the chat template of a {} model",
                                     *parts_->facts.coded_renderer);
    } else if (context.rules.chats_in_code) {
      request->inexact = "a worker was started with a chat format of its own";
    }
  }
  auto rendered = parts_->render(*request, body, context);
  if (!rendered) return fail(rendered.error());
  if (rendered->too_much) return Prepared{.prompts = {}, .too_much = true};
  Exactness& exactness = rendered->exactness;
  if (!rendered->text) {
    // The engine will render something else: the template's error need not occur there.
    if (!exactness.inexact.empty() && rendered->text.error().code() != Errc::ClientGone) {
      return Prepared{.prompts = {}, .inexact = std::move(exactness.inexact)};
    }
    return fail(rendered->text.error());
  }
  auto ids = parts_->encode(*rendered->text, request->add_special, context);
  if (!ids) return failed(std::move(ids.error()));
  Prepared prepared{.prompts = {},
                    .inexact = std::move(exactness.inexact),
                    .engines_differ = std::move(exactness.engines_differ)};
  prepared.prompts.push_back(std::move(*ids));
  return prepared;
}

Result<std::string> Preprocessor::rendered(const wire::JsonObject& body,
                                           const RenderContext& context) const {
  const auto request = chat_request(body, context.rules);
  if (!request) return fail(request.error());
  if (request->brings_template) return refuse("chat_template", "of a request is not rendered");
  auto rendered = parts_->render(*request, body, context);
  if (!rendered) return fail(rendered.error());
  return std::move(rendered->text);
}

Result<Prepared> Preprocessor::completion(const wire::JsonObject& body,
                                          const RenderContext& context) const {
  Exactness exactness = completion_exactness(body);
  Prepared prepared{.prompts = {},
                    .inexact = std::move(exactness.inexact),
                    .engines_differ = std::move(exactness.engines_differ)};
  if (has_too_many_prompts(body)) return prepared;
  auto prompts = completion_prompts(body);
  if (!prompts) return fail(prompts.error());
  if (prompts->empty() && !is_given(body, "prompt_embeds")) return refuse("prompt", "is missing");
  const auto special = flag(body, "add_special_tokens", true);
  if (!special) return fail(special.error());
  const tokenizer::AddSpecial add_special =
      *special ? tokenizer::AddSpecial::Yes : tokenizer::AddSpecial::No;
  for (CompletionPrompt& prompt : *prompts) {
    if (context.stop.stop_requested()) return fail(Errc::ClientGone, "the request was cancelled");
    if (auto* const given = std::get_if<tokenizer::TokenIds>(&prompt)) {
      if (auto checked = parts_->check(*given); !checked) return fail(checked.error());
      prepared.prompts.push_back(std::move(*given));
      continue;
    }
    auto ids = parts_->encode(std::get<std::string>(prompt), add_special, context);
    if (!ids) return failed(std::move(ids.error()));
    prepared.prompts.push_back(std::move(*ids));
  }
  return prepared;
}

const tokenizer::Tokenizer& Preprocessor::tokenizer(const Rules& rules) const {
  return *parts_->reading(rules).tokenizer;
}

bool Preprocessor::has_chat_template() const { return !parts_->templates.empty(); }

std::optional<std::size_t> Preprocessor::vocabulary_size() const {
  return parts_->facts.vocabulary_size;
}

std::optional<std::size_t> Preprocessor::max_model_length() const {
  return parts_->facts.max_model_length;
}

tokenizer::SegmentCache::Stats Preprocessor::cache_stats() const {
  tokenizer::SegmentCache::Stats sum;
  for (const Parts::Reading* const one : {&parts_->current, &parts_->earlier}) {
    if (one->cache) sum += one->cache->stats();
  }
  return sum;
}

}  // namespace baton::prompt
