// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/prompt_step.h"

#include "engine/shared/token_ids.h"
#include "pipeline/given_ids.h"
#include "pipeline/prompt_rules.h"
#include "prompt/completion_prompts.h"
#include "prompt/exactness.h"
#include "prompt/preprocessor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace baton::pipeline {
namespace {

using SharedBody = std::shared_ptr<const engine::ClientBody>;

// Tokenizing takes a millisecond for fifty kilobytes. How much a template makes of a short body is
// another matter: it is tried in place with prompt::Effort::Little.
constexpr std::size_t kTokenizedInPlace = std::size_t{4} * 1024;

// Memory of a body, in multiples of its size, while its prompt is made and becomes tokens: that
// much if each byte is a token, or the messages are many and short.
constexpr std::size_t kToTokenize = 13;
constexpr std::string_view kNoMemory = "too little memory is left to tokenize it (limits.memory)";

struct Made {
  PromptTokens tokens = {};
  std::size_t count = 0;
  std::string inexact = {};  // why; empty: it is exact
  std::string engines_differ = {};
  bool too_much = false;
};

model::EngineSet engines_of(const fleet::Model& model) {
  return model.engines({model::Role::Prefill, model::Role::Decode, model::Role::Aggregated});
}

// According to the model's files and its workers; nullopt: unknown.
std::optional<std::uint64_t> smallest_vocabulary(const fleet::Model& model,
                                                 const ModelTokens* tokens) {
  std::optional<std::uint64_t> smallest;
  if (tokens && tokens->preprocessor) smallest = tokens->preprocessor->vocabulary_size();
  const auto pools = model.pools();
  for (const auto& pool : *pools) {
    for (const model::Role role :
         {model::Role::Prefill, model::Role::Decode, model::Role::Aggregated}) {
      const auto members = pool->workers(role).members();
      for (const auto& worker : members->workers) {
        const auto size = worker->vocabulary_size();
        if (size && (!smallest || *size < *smallest)) smallest = *size;
      }
    }
  }
  return smallest;
}

// Whether any worker may get ids. TensorRT-LLM's decode workers do in any case.
bool are_sent(const config::Tokens& settings, const fleet::Model& model) {
  return settings.send != model::SendTokenIds::Never ||
         engines_of(model).contains(model::Engine::Trtllm);
}

using JsonTexts = std::vector<std::shared_ptr<const std::string>>;

JsonTexts as_json(const std::vector<tokenizer::TokenIds>& prompts, PerPrompt per_prompt) {
  JsonTexts json;
  // An empty list of ids is no prompt to an engine, an empty text may be one.
  if (std::ranges::any_of(prompts, &tokenizer::TokenIds::empty)) return json;
  const auto add = [&](std::span<const tokenizer::TokenIds> some) {
    json.push_back(std::make_shared<const std::string>(engine::token_ids_json(some)));
  };
  if (per_prompt == PerPrompt::No) {
    add(prompts);
  } else {
    for (const tokenizer::TokenIds& ids : prompts) add({&ids, 1});
  }
  return json;
}

std::size_t count_of(const std::vector<tokenizer::TokenIds>& prompts) {
  std::size_t count = 0;
  for (const tokenizer::TokenIds& ids : prompts) count += ids.size();
  return count;
}

// In the number of `as_json`: if a request's prompts go to one worker together, no cache holds it
// as a whole.
std::vector<std::shared_ptr<const kvcache::PromptBlocks>> as_blocks(
    const std::vector<tokenizer::TokenIds>& prompts, PerPrompt per_prompt,
    const kvcache::HashPlan& plan, const kvcache::PromptScope& scope) {
  std::vector<std::shared_ptr<const kvcache::PromptBlocks>> blocks;
  if (plan.shapes.empty() || (per_prompt == PerPrompt::No && prompts.size() != 1)) return blocks;
  for (const tokenizer::TokenIds& ids : prompts) {
    blocks.push_back(
        std::make_shared<const kvcache::PromptBlocks>(kvcache::hash_prompt(plan, ids, scope)));
  }
  return blocks;
}

std::string salt_of(const handoff::HandoffRequest& job) {
  const wire::JsonObject& body = job.body->object();
  if (body.has("cache_salt")) return body.find_string("cache_salt").value_or(std::string());
  // TensorRT-LLM takes a salt in chats only.
  const bool sent =
      job.api == engine::Api::Chat || !engines_of(*job.model).contains(model::Engine::Trtllm);
  return sent ? job.hints->tenant : std::string();
}

// The request's scope: what sets its blocks apart in a worker's cache.
kvcache::PromptScope scope_of(const handoff::HandoffRequest& job) {
  kvcache::PromptScope scope{.salt = salt_of(job), .key = {}};
  const auto add = [&](std::string_view field, model::Engine heeded_by) {
    const auto value = job.body->object().find(field);
    if (!value || *value == "null" || *value == R"("")" || *value == "[]") return;
    if (engines_of(*job.model).contains(heeded_by))
      scope.key += fmt::format("{}={};", field, *value);
  };
  add("extra_key", model::Engine::Sglang);
  add("lora_path", model::Engine::Sglang);
  if (scope.salt.empty()) add("cache_salt", model::Engine::Sglang);  // which may be a list there
  add("lora_request", model::Engine::Trtllm);
  return scope;
}

// A task, kept alive by its runner.
struct Task {
  std::shared_ptr<const ModelTokens> model;
  engine::Api api;
  SharedBody body;
  PerPrompt per_prompt;
  bool with_json;
  kvcache::HashPlan plan = {};
  kvcache::PromptScope scope = {};
  std::stop_token stop = {};
  prompt::Effort effort = prompt::Effort::Full;
  std::vector<prompt::Rules> rules = {};
};

Result<Made> make(const Task& task) {
  const prompt::RenderContext context{
      .now = std::chrono::system_clock::now(), .stop = task.stop, .effort = task.effort};
  auto prepared =
      prepare(*task.model->preprocessor, task.api, task.body->object(), context, task.rules);
  if (!prepared) return fail(std::move(prepared.error()));
  if (prepared->too_much) return Made{.too_much = true};
  Made made{.tokens = {.json = {}, .send = task.model->settings.send, .blocks = {}},
            .count = count_of(prepared->prompts),
            .inexact = std::move(prepared->inexact),
            .engines_differ = std::move(prepared->engines_differ)};
  if (made.inexact.empty() && task.with_json)
    made.tokens.json = as_json(prepared->prompts, task.per_prompt);
  if (made.inexact.empty())
    made.tokens.blocks = as_blocks(prepared->prompts, task.per_prompt, task.plan, task.scope);
  return made;
}

// Facts of a prompt before a worker is asked for it.
struct Known {
  prompt::Exactness exactness = {};
  // Only if it is exact:
  std::string key = {};
  std::optional<tokenizer::TokenIds> ids = {};
};

Known look_up(const Task& task) {
  const wire::JsonObject& body = task.body->object();
  Known known{.exactness = task.api == engine::Api::Chat ? prompt::chat_exactness(body)
                                                         : prompt::completion_exactness(body)};
  if (!known.exactness.inexact.empty()) return known;
  known.key = prompt_key(task.api, body, std::chrono::system_clock::now());
  tokenizer::TokenIds ids;
  if (task.model->told->append_known(known.key, tokenizer::Place::First, ids))
    known.ids = std::move(ids);
  return known;
}

Made keep(const Task& task, const std::string& key,
          const std::vector<tokenizer::TokenIds>& prompts) {
  if (prompts.size() == 1)
    task.model->told->remember(key, tokenizer::Place::First, prompts.front());
  Made made{.tokens = {.json = {}, .send = task.model->settings.send, .blocks = {}},
            .count = count_of(prompts)};
  if (task.with_json) made.tokens.json = as_json(prompts, task.per_prompt);
  made.tokens.blocks = as_blocks(prompts, task.per_prompt, task.plan, task.scope);
  return made;
}

}  // namespace

std::size_t PromptTokens::bytes() const {
  std::size_t bytes = 0;
  for (const auto& text : json) bytes += text->size();
  for (const auto& one : blocks) bytes += one->bytes();
  return bytes;
}

std::uint64_t estimated_tokens(const RequestRecord& record) {
  constexpr std::size_t kBytesPerToken = 4;  // of most texts, about
  return record.prompt_length > 0 ? record.prompt_length
                                  : record.request_bytes / kBytesPerToken + 1;
}

void attach_prompt(handoff::HandoffRequest& job, const PromptTokens& tokens, std::size_t prompt,
                   kvcache::KvCacheView& caches, RequestRecord& record) {
  job.send_token_ids = tokens.send;
  if (prompt < tokens.json.size()) job.token_ids = tokens.json[prompt];
  if (prompt >= tokens.blocks.size()) return;
  record.cache_hit_tracker = std::make_shared<CacheHitTracker>(caches, tokens.blocks[prompt]);
  job.observer = record.cache_hit_tracker;
  job.prompt_tokens = tokens.blocks[prompt]->tokens;
}

awaitable<Result<SharedBody>> PromptStep::read(std::string body, MemoryShare memory) {
  const std::size_t size = body.size();
  if (size > net::CpuPool::kInPlace && !memory.cover_work(size, MemoryBudget::kToRead))
    co_return fail(no_memory_for("reading the request's body"));
  co_return co_await cpu_.run_sized(
      size, [text = std::move(body), share = std::move(memory)]() mutable {
        return engine::ClientBody::parse(std::move(text), std::move(share));
      });
}

awaitable<Result<PromptTokens>> PromptStep::tokens(const handoff::HandoffRequest& job,
                                                   PerPrompt per_prompt, RequestRecord& record,
                                                   Cancellation& cancellation) {
  const auto model = tokenizers_.find(job.model->name());
  if (auto checked = co_await check_given(job, model.get()); !checked)
    co_return fail(std::move(checked.error()));
  if (!model || !model->preprocessor) {
    auto given = co_await take_given(job, per_prompt, record);
    if (given) co_return std::move(*given);
  }
  if (!model) co_return PromptTokens{};
  // Engines take text as well.
  if (!job.body->memory().cover_work(job.body->object().text().size(), kToTokenize)) {
    record.tokens = TokenSource::Failed;
    record.tokens_reason = kNoMemory;
    co_return PromptTokens{};
  }
  const auto begun = RequestRecord::Clock::now();
  Result<PromptTokens> made = PromptTokens{};
  if (model->preprocessor) {
    made = co_await tokenize(model, job, per_prompt, record, cancellation);
  } else {
    made = co_await ask_engine(model, job, per_prompt, record, cancellation);
  }
  record.tokenize_time = RequestRecord::Clock::now() - begun;
  if (cancellation.requested()) {
    record.tokens = TokenSource::Off;
    co_return fail(cancellation.reason());
  }
  co_return made;
}

// An adapter's blocks are of no use to the model itself or to another adapter.
kvcache::HashPlan PromptStep::plan_for(const handoff::HandoffRequest& job) const {
  kvcache::HashPlan plan = cache_view_.plan(job.model->name());
  if (job.adapter) plan.lora = job.adapter->name;
  return plan;
}

// An id that no worker knows may end the one that gets it.
awaitable<Result<void>> PromptStep::check_given(const handoff::HandoffRequest& job,
                                                const ModelTokens* model) {
  const std::size_t bytes = given_ids_bytes(job.api, job.body->object());
  if (bytes == 0) co_return Result<void>{};
  const auto vocabulary = smallest_vocabulary(*job.model, model);
  co_return co_await run(bytes, [api = job.api, body = job.body, vocabulary] {
    return check_given_ids(api, body->object(), vocabulary);
  });
}

// Prompts that come as token ids need no tokenizing.
awaitable<std::optional<PromptTokens>> PromptStep::take_given(const handoff::HandoffRequest& job,
                                                              PerPrompt per_prompt,
                                                              RequestRecord& record) {
  if (job.api != engine::Api::Completions) co_return std::nullopt;
  const auto prompt = job.body->object().find("prompt");
  if (!prompt || !prompt->starts_with('[')) co_return std::nullopt;
  struct Given {
    std::size_t count = 0;
    PromptTokens tokens;
  };
  auto given = co_await run(
      prompt->size(),
      [body = job.body, per_prompt, plan = plan_for(job),
       scope = scope_of(job)]() -> std::optional<Given> {
        const auto prompts = prompt::given_token_ids(body->object());
        if (prompts.empty()) return std::nullopt;
        return Given{.count = count_of(prompts),
                     .tokens = {.json = {},
                                .send = model::SendTokenIds::Auto,
                                .blocks = as_blocks(prompts, per_prompt, plan, scope)}};
      });
  if (!given) co_return std::nullopt;
  record.tokens = TokenSource::Client;
  record.prompt_length = given->count;
  co_return std::move(given->tokens);
}

// Runs short work here, and long work on a CPU thread: changing threads takes time, too.
template <class Work>
awaitable<std::invoke_result_t<Work&>> PromptStep::run(std::size_t bytes, Work work) {
  if (bytes <= kTokenizedInPlace) co_return work();
  co_return co_await cpu_.run(std::move(work));
}

awaitable<Result<PromptTokens>> PromptStep::tokenize(std::shared_ptr<const ModelTokens> model,
                                                     const handoff::HandoffRequest& job,
                                                     PerPrompt per_prompt, RequestRecord& record,
                                                     Cancellation& cancellation) {
  std::stop_source stop;
  const Cancellation::Listener listener(cancellation, [&stop] { stop.request_stop(); });
  Task task{.model = model,
            .api = job.api,
            .body = job.body,
            .per_prompt = per_prompt,
            .with_json = are_sent(model->settings, *job.model),
            .plan = plan_for(job),
            .scope = scope_of(job),
            .stop = stop.get_token(),
            .rules = rules_in(*job.model)};
  const std::size_t bytes = job.body->object().text().size();
  std::optional<Result<Made>> here;
  if (bytes <= kTokenizedInPlace) {
    task.effort = prompt::Effort::Little;
    here = make(task);
    task.effort = prompt::Effort::Full;
  }
  const bool there = !here || (*here && (*here)->too_much);
  auto made =
      there ? co_await cpu_.run([task = std::move(task)] { return make(task); }) : *std::move(here);
  if (!made) {
    record.tokens = TokenSource::Failed;
    record.tokens_reason = made.error().message();
    co_return fail(std::move(made.error()));
  }
  record.prompt_length = made->count;
  const bool other_engines =
      !made->engines_differ.empty() && !engines_of(*job.model).without(model::Engine::Vllm).empty();
  if (!made->inexact.empty() || other_engines) {
    record.tokens = TokenSource::Inexact;
    record.tokens_reason =
        made->inexact.empty() ? std::move(made->engines_differ) : std::move(made->inexact);
    co_return PromptTokens{};
  }
  record.tokens = TokenSource::Local;
  co_return std::move(made->tokens);
}

awaitable<PromptTokens> PromptStep::ask_engine(std::shared_ptr<const ModelTokens> model,
                                               const handoff::HandoffRequest& job,
                                               PerPrompt per_prompt, RequestRecord& record,
                                               Cancellation& cancellation) {
  const Task task{.model = model,
                  .api = job.api,
                  .body = job.body,
                  .per_prompt = per_prompt,
                  .with_json = are_sent(model->settings, *job.model),
                  .plan = plan_for(job),
                  .scope = scope_of(job)};
  const std::size_t bytes = job.body->object().text().size();
  auto known = co_await run(bytes, [task] { return look_up(task); });
  // One engine's answer about such a request does not hold for the workers of another.
  const bool of_one_only =
      !known.exactness.engines_differ.empty() && engines_of(*job.model).size() > 1;
  if (!known.exactness.inexact.empty() || of_one_only) {
    record.tokens = TokenSource::Inexact;
    record.tokens_reason = known.exactness.inexact.empty()
                               ? std::move(known.exactness.engines_differ)
                               : std::move(known.exactness.inexact);
    co_return PromptTokens{};
  }
  Result<std::vector<tokenizer::TokenIds>> prompts = std::vector<tokenizer::TokenIds>{};
  if (known.ids) {
    prompts->push_back(*std::move(known.ids));
  } else {
    prompts = co_await engines_.ask(job, *model->said_route, cancellation);
  }
  record.tokens = prompts ? TokenSource::Engine : TokenSource::Failed;
  if (!prompts) {
    record.tokens_reason = prompts.error().message();
    co_return PromptTokens{};
  }
  auto made = co_await run(bytes, [task, key = std::move(known.key), told = *std::move(prompts)] {
    return keep(task, key, told);
  });
  record.prompt_length = made.count;
  co_return std::move(made.tokens);
}

}  // namespace baton::pipeline
