// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/prompt_step.h"

#include "engine/token_ids.h"
#include "prompt/preprocessor.h"

#include <chrono>
#include <stop_token>
#include <utility>

namespace baton::pipeline {
namespace {

using SharedBody = std::shared_ptr<const engine::ClientBody>;

// Checking JSON takes about a millisecond for two megabytes, tokenizing one for fifty kilobytes:
// what takes no longer than the way to another thread and back is done where it is.
constexpr std::size_t kCheckedInPlace = std::size_t{64} * 1024;
constexpr std::size_t kTokenizedInPlace = std::size_t{4} * 1024;

struct Made {
  PromptTokens tokens;
  std::size_t count = 0;
  std::string inexact;
};

std::vector<std::shared_ptr<const std::string>> as_json(
    const std::vector<prompt::TokenIds>& prompts, PerPrompt per_prompt) {
  std::vector<std::shared_ptr<const std::string>> json;
  if (per_prompt == PerPrompt::No) {
    json.push_back(std::make_shared<const std::string>(engine::token_ids_json(prompts)));
    return json;
  }
  for (const prompt::TokenIds& ids : prompts)
    json.push_back(std::make_shared<const std::string>(engine::token_ids_json({&ids, 1})));
  return json;
}

Result<Made> make(const ModelTokens& model, engine::Api api, const wire::JsonObject& body,
                  PerPrompt per_prompt, const std::stop_token& stop) {
  const prompt::Occasion occasion{.now = std::chrono::system_clock::now(), .stop = stop};
  auto prepared = api == engine::Api::Chat ? model.preprocessor->chat(body, occasion)
                                           : model.preprocessor->completion(body, occasion);
  if (!prepared) return fail(std::move(prepared.error()));
  Made made{.tokens = {}, .count = 0, .inexact = std::move(prepared->inexact)};
  for (const prompt::TokenIds& ids : prepared->prompts) made.count += ids.size();
  made.tokens.send = model.settings.send;
  if (made.inexact.empty() && model.settings.send != model::SendTokenIds::Never)
    made.tokens.json = as_json(prepared->prompts, per_prompt);
  return made;
}

}  // namespace

awaitable<Result<SharedBody>> PromptStep::read(std::string body) {
  if (body.size() <= kCheckedInPlace) co_return engine::ClientBody::parse(std::move(body));
  co_return co_await cpu_.run(
      [text = std::move(body)]() mutable { return engine::ClientBody::parse(std::move(text)); });
}

awaitable<Result<PromptTokens>> PromptStep::tokens(std::string_view model, engine::Api api,
                                                   SharedBody body, PerPrompt per_prompt,
                                                   RequestRecord& record,
                                                   Cancellation& cancellation) {
  auto how = tokenizers_.find(model);
  if (!how) co_return PromptTokens{};
  const auto begun = RequestRecord::Clock::now();
  auto made =
      co_await tokenize(std::move(how), api, std::move(body), per_prompt, record, cancellation);
  record.tokenize_time = RequestRecord::Clock::now() - begun;
  co_return made;
}

awaitable<Result<PromptTokens>> PromptStep::tokenize(std::shared_ptr<const ModelTokens> model,
                                                     engine::Api api, SharedBody body,
                                                     PerPrompt per_prompt, RequestRecord& record,
                                                     Cancellation& cancellation) {
  Result<Made> made = Made{};
  if (body->object().text().size() <= kTokenizedInPlace) {
    made = make(*model, api, body->object(), per_prompt, {});
  } else {
    std::stop_source stop;
    const Cancellation::Listener listener(cancellation, [&stop] { stop.request_stop(); });
    made = co_await cpu_.run([model, api, body, per_prompt, token = stop.get_token()] {
      return make(*model, api, body->object(), per_prompt, token);
    });
    if (cancellation.requested()) co_return fail(cancellation.reason());
  }
  if (!made) {
    record.tokens = TokenSource::Failed;
    co_return fail(std::move(made.error()));
  }
  record.tokens = made->inexact.empty() ? TokenSource::Local : TokenSource::Inexact;
  record.prompt_length = made->count;
  co_return std::move(made->tokens);
}

}  // namespace baton::pipeline
