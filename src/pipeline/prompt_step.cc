// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/prompt_step.h"

#include "engine/token_ids.h"
#include "prompt/preprocessor.h"

#include <chrono>
#include <span>
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

PromptTokens for_workers(const std::vector<prompt::TokenIds>& prompts,
                         const config::Tokens& settings, PerPrompt per_prompt) {
  PromptTokens tokens{.json = {}, .send = settings.send};
  if (settings.send == model::SendTokenIds::Never) return tokens;
  const auto add = [&](std::span<const prompt::TokenIds> some) {
    tokens.json.push_back(std::make_shared<const std::string>(engine::token_ids_json(some)));
  };
  if (per_prompt == PerPrompt::No) {
    add(prompts);
  } else {
    for (const prompt::TokenIds& ids : prompts) add({&ids, 1});
  }
  return tokens;
}

std::size_t count_of(const std::vector<prompt::TokenIds>& prompts) {
  std::size_t count = 0;
  for (const prompt::TokenIds& ids : prompts) count += ids.size();
  return count;
}

Result<Made> make(const ModelTokens& model, engine::Api api, const wire::JsonObject& body,
                  PerPrompt per_prompt, const std::stop_token& stop) {
  const prompt::Occasion occasion{.now = std::chrono::system_clock::now(), .stop = stop};
  auto prepared = api == engine::Api::Chat ? model.preprocessor->chat(body, occasion)
                                           : model.preprocessor->completion(body, occasion);
  if (!prepared) return fail(std::move(prepared.error()));
  Made made{
      .tokens = {}, .count = count_of(prepared->prompts), .inexact = std::move(prepared->inexact)};
  if (made.inexact.empty())
    made.tokens = for_workers(prepared->prompts, model.settings, per_prompt);
  return made;
}

}  // namespace

awaitable<Result<SharedBody>> PromptStep::read(std::string body) {
  if (body.size() <= kCheckedInPlace) co_return engine::ClientBody::parse(std::move(body));
  co_return co_await cpu_.run(
      [text = std::move(body)]() mutable { return engine::ClientBody::parse(std::move(text)); });
}

awaitable<Result<PromptTokens>> PromptStep::tokens(const handoff::Job& job, PerPrompt per_prompt,
                                                   RequestRecord& record,
                                                   Cancellation& cancellation) {
  auto model = tokenizers_.find(job.model->name());
  if (!model) co_return PromptTokens{};
  const auto begun = RequestRecord::Clock::now();
  Result<PromptTokens> made = PromptTokens{};
  if (model->preprocessor) {
    made = co_await tokenize(std::move(model), job, per_prompt, record, cancellation);
  } else {
    made = co_await ask_engine(std::move(model), job, per_prompt, record);
  }
  record.tokenize_time = RequestRecord::Clock::now() - begun;
  if (cancellation.requested()) co_return fail(cancellation.reason());
  co_return made;
}

awaitable<Result<PromptTokens>> PromptStep::tokenize(std::shared_ptr<const ModelTokens> model,
                                                     const handoff::Job& job, PerPrompt per_prompt,
                                                     RequestRecord& record,
                                                     Cancellation& cancellation) {
  Result<Made> made = Made{};
  if (job.body->object().text().size() <= kTokenizedInPlace) {
    made = make(*model, job.api, job.body->object(), per_prompt, {});
  } else {
    std::stop_source stop;
    const Cancellation::Listener listener(cancellation, [&stop] { stop.request_stop(); });
    made = co_await cpu_.run(
        [model, api = job.api, body = job.body, per_prompt, token = stop.get_token()] {
          return make(*model, api, body->object(), per_prompt, token);
        });
  }
  if (!made) {
    record.tokens = TokenSource::Failed;
    co_return fail(std::move(made.error()));
  }
  record.tokens = made->inexact.empty() ? TokenSource::Local : TokenSource::Inexact;
  record.prompt_length = made->count;
  co_return std::move(made->tokens);
}

awaitable<PromptTokens> PromptStep::ask_engine(std::shared_ptr<const ModelTokens> model,
                                               const handoff::Job& job, PerPrompt per_prompt,
                                               RequestRecord& record) {
  const auto prompts = co_await engines_.ask(job, *model->told);
  record.tokens = prompts ? TokenSource::Engine : TokenSource::Failed;
  if (!prompts) co_return PromptTokens{};
  record.prompt_length = count_of(*prompts);
  co_return for_workers(*prompts, model->settings, per_prompt);
}

}  // namespace baton::pipeline
