// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/hints.h"

#include "scheduling/policy/hint_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace baton::scheduling {
namespace {

constexpr std::size_t kMaxMetadata = 64;

enum class Slot : std::size_t {
  Worker,
  PrefillWorker,
  Rank,
  PrefillRank,
  Priority,
  StrictPriority,
  Tenant,
  RequestId,
  Session,  // this and the following are preferences, accepted from every client
  ParentSession,
  SessionFinal,
};
constexpr std::size_t kSlots = 11;

struct Name {
  std::string_view name;
  Slot slot;
};

constexpr std::array kNames{
    Name{kWorkerHeader, Slot::Worker},
    Name{"x-dynamo-worker-instance-id", Slot::Worker},
    Name{"x-worker-instance-id", Slot::Worker},
    Name{kPrefillWorkerHeader, Slot::PrefillWorker},
    Name{"x-dynamo-prefill-instance-id", Slot::PrefillWorker},
    Name{"x-prefill-instance-id", Slot::PrefillWorker},
    Name{kRankHeader, Slot::Rank},
    Name{"x-dynamo-dp-rank", Slot::Rank},
    Name{"x-dp-rank", Slot::Rank},
    Name{"x-data-parallel-rank", Slot::Rank},
    Name{kPrefillRankHeader, Slot::PrefillRank},
    Name{"x-dynamo-prefill-dp-rank", Slot::PrefillRank},
    Name{"x-prefill-dp-rank", Slot::PrefillRank},
    Name{"x-baton-request-priority", Slot::Priority},
    Name{"x-dynamo-request-priority", Slot::Priority},
    Name{"x-baton-request-strict-priority", Slot::StrictPriority},
    Name{"x-dynamo-request-strict-priority", Slot::StrictPriority},
    Name{"x-tenant-id", Slot::Tenant},
    Name{"x-baton-request-id", Slot::RequestId},
    Name{"x-dynamo-request-id", Slot::RequestId},
    Name{kSessionHeader, Slot::Session},
    Name{"x-dynamo-session-id", Slot::Session},
    Name{"x-baton-parent-session-id", Slot::ParentSession},
    Name{"x-dynamo-parent-session-id", Slot::ParentSession},
    Name{"x-baton-session-final", Slot::SessionFinal},
    Name{"x-dynamo-session-final", Slot::SessionFinal},
};
constexpr std::array<std::string_view, 2> kMetaPrefixes{"x-baton-meta-", "x-dynamo-meta-"};

std::unexpected<Error> invalid(std::string message) {
  return fail(Errc::InvalidRouting, std::move(message));
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

// Role. The headers that concern routing, each under whichever of its names it came.
// Confinement. One call of read_hints.
// Lifetime. The request's headers outlive it.
// Invariants. A header without a value is absent; one that says two things is an error.
class RoutingHeaders {
 public:
  static Result<RoutingHeaders> gather(const wire::Headers& headers, Trusted trusted) {
    RoutingHeaders gathered;
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const wire::Headers::Field field = headers[i];
      if (field.value.empty() || field.name.size() < 2 || (field.name[0] | 0x20) != 'x') continue;
      if (auto taken = gathered.take(field, trusted); !taken) return fail(std::move(taken.error()));
    }
    return gathered;
  }

  std::optional<wire::Headers::Field> find(Slot slot) const {
    return fields_[static_cast<std::size_t>(slot)];
  }
  // Requires: asked once.
  std::map<std::string, std::string, std::less<>> take_metadata() { return std::move(metadata_); }

 private:
  Result<void> take(wire::Headers::Field field, Trusted trusted) {
    const auto known = std::ranges::find_if(kNames, [&field](const Name& one) {
      return wire::equal_ignoring_case(one.name, field.name);
    });
    if (known == kNames.end())
      return trusted == Trusted::Yes ? take_metadata_of(field) : Result<void>{};
    if (trusted == Trusted::No && known->slot < Slot::Session) return {};
    if (field.value.size() > kMaxIdBytes) {
      return invalid(fmt::format("{} is longer than {} bytes", field.name, kMaxIdBytes));
    }
    auto& slot = fields_[static_cast<std::size_t>(known->slot)];
    if (slot && slot->value != field.value) return contradiction(slot->name, field.name);
    slot = field;
    return {};
  }

  Result<void> take_metadata_of(wire::Headers::Field field) {
    for (const std::string_view prefix : kMetaPrefixes) {
      if (field.name.size() <= prefix.size() ||
          !wire::equal_ignoring_case(field.name.substr(0, prefix.size()), prefix)) {
        continue;
      }
      if (field.name.size() > kMaxIdBytes || field.value.size() > kMaxIdBytes) {
        return invalid(fmt::format("{} or its value is longer than {} bytes",
                                   field.name.substr(0, kMaxIdBytes), kMaxIdBytes));
      }
      const auto [entry, is_new] =
          metadata_.emplace(lower(field.name.substr(prefix.size())), field.value);
      if (metadata_.size() > kMaxMetadata) {
        return invalid(fmt::format("more than {} headers {}*", kMaxMetadata, kMetaPrefixes[0]));
      }
      if (!is_new && entry->second != field.value) {
        return contradiction(fmt::format("{}{}", kMetaPrefixes[0], entry->first), field.name);
      }
    }
    return {};
  }

  static std::unexpected<Error> contradiction(std::string_view first, std::string_view second) {
    return invalid(wire::equal_ignoring_case(first, second)
                       ? fmt::format("{} stands twice, with different values", first)
                       : fmt::format("{} and {} mean the same but have different values; send one",
                                     first, second));
  }

  std::array<std::optional<wire::Headers::Field>, kSlots> fields_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

template <class Number>
Result<std::optional<Number>> read_number(const std::optional<wire::Headers::Field>& field) {
  if (!field) return std::nullopt;
  Number number{};
  const char* const end = field->value.data() + field->value.size();
  const auto [stop, error] = std::from_chars(field->value.data(), end, number);
  if (stop != end || error != std::errc{}) {
    return invalid(fmt::format("{} must be a whole number{}", field->name,
                               std::is_signed_v<Number> ? " of 32 bits" : " from 0 of 32 bits"));
  }
  return number;
}

Result<std::optional<std::uint32_t>> read_rank(const std::optional<wire::Headers::Field>& field) {
  if (!field) return std::nullopt;
  return parse_rank(field->value, field->name);
}

std::optional<std::string> text_of(const std::optional<wire::Headers::Field>& field) {
  return field ? std::optional<std::string>(field->value) : std::nullopt;
}

template <class T>
std::optional<T> first_of(std::optional<T> first, std::optional<T> second) {
  return first ? std::move(first) : std::move(second);
}

Result<void> read_pins(const RoutingHeaders& headers, BodyHints& body, Hints& hints) {
  const auto rank = read_rank(headers.find(Slot::Rank));
  if (!rank) return fail(rank.error());
  const auto prefill_rank = read_rank(headers.find(Slot::PrefillRank));
  if (!prefill_rank) return fail(prefill_rank.error());

  // This header names the worker of decode, and of prefill if no other header does.
  const auto named = text_of(headers.find(Slot::Worker));
  const auto backend = first_of(named, body.backend_worker);
  const auto decode = first_of(named, first_of(body.decode_worker, backend));
  const auto prefill = first_of(text_of(headers.find(Slot::PrefillWorker)),
                                first_of(std::move(body.prefill_worker), backend));
  const auto decode_rank = first_of(*rank, body.rank);
  const auto own_rank = first_of(*prefill_rank, body.prefill_rank);
  if (decode_rank && !decode && !prefill) {
    return invalid(fmt::format("a rank is asked for, but no worker; send {} with {}", kWorkerHeader,
                               kRankHeader));
  }
  if (own_rank && !prefill) {
    return invalid(
        fmt::format("a prefill rank is asked for, but no prefill worker; send {} with {}",
                    kPrefillWorkerHeader, kPrefillRankHeader));
  }
  if (decode) hints.decode = Pin{*decode, decode_rank};
  if (prefill) hints.prefill = Pin{*prefill, first_of(own_rank, decode_rank)};
  return {};
}

Result<void> read_choices(RoutingHeaders& headers, const wire::JsonObject& body, Hints& hints) {
  auto said = read_body_hints(body);
  if (!said) return fail(std::move(said.error()));
  if (auto pins = read_pins(headers, *said, hints); !pins) return pins;
  const auto priority = read_number<std::int32_t>(headers.find(Slot::Priority));
  if (!priority) return fail(priority.error());
  const auto strict = read_number<std::uint32_t>(headers.find(Slot::StrictPriority));
  if (!strict) return fail(strict.error());
  hints.priority = first_of(*priority, said->priority);
  hints.strict_priority = first_of(*strict, said->strict_priority);
  hints.expected_output = said->expected_output;
  hints.allowed = std::move(said->allowed);
  hints.constraints = std::move(said->constraints);
  hints.cost = said->cost;
  hints.query_only = said->query_only;
  hints.tenant = text_of(headers.find(Slot::Tenant)).value_or("");
  hints.request_id = text_of(headers.find(Slot::RequestId)).value_or("");
  hints.metadata = headers.take_metadata();
  return {};
}

// A body's field that cannot be a session id is left alone: it may mean something else to the
// engine.
std::string session_in(const wire::JsonObject& body, std::span<const std::string> fields) {
  for (const std::string& field : fields) {
    auto session = body.find_string(field);
    if (session && !session->empty() && session->size() <= kMaxIdBytes) return *std::move(session);
  }
  return "";
}

}  // namespace

Result<Hints> read_hints(const wire::Headers& headers, const wire::JsonObject& body,
                         Trusted trusted, std::span<const std::string> session_fields) {
  auto gathered = RoutingHeaders::gather(headers, trusted);
  if (!gathered) return fail(std::move(gathered.error()));
  Hints hints;
  const auto session = gathered->find(Slot::Session);
  hints.session_id = session ? std::string(session->value) : session_in(body, session_fields);
  hints.parent_session_id = text_of(gathered->find(Slot::ParentSession)).value_or("");
  if (const auto final_one = gathered->find(Slot::SessionFinal)) {
    hints.session_final = final_one->value == "true";
    if (!hints.session_final && final_one->value != "false") {
      return invalid(fmt::format("{} must be true or false", final_one->name));
    }
  }
  if (trusted == Trusted::No) return hints;
  if (auto read = read_choices(*gathered, body, hints); !read) return fail(std::move(read.error()));
  return hints;
}

}  // namespace baton::scheduling
