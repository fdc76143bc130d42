// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/messages.h"

#include "libs/base64/base64.h"
#include "wire/json_array.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace baton::etcd {
namespace {

using wire::JsonObject;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
constexpr std::string_view kLowestKey("\0", 1);
constexpr std::size_t kLongestMessage = 500;  // of what etcd says; for people, so not all of it
constexpr std::size_t kLongestLine = 200;     // of an answer that is not etcd's

// google.golang.org/grpc/codes
enum GrpcCode : int {
  kUnknown = 2,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kOutOfRange = 11,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

std::unexpected<std::string> wrong(std::string problem) {
  return std::unexpected(std::move(problem));
}

// ---- single members; one that is left out has its default value ----

Decoded<std::int64_t> integer(const JsonObject& object, std::string_view name) {
  const auto raw = object.find(name);
  if (!raw || *raw == "null") return 0;
  std::string_view digits = *raw;
  // Some versions of the gateway might write a plain number: protobuf's JSON allows for both.
  if (digits.size() >= 2 && digits.starts_with('"')) digits = digits.substr(1, digits.size() - 2);
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end)
    return wrong(fmt::format("`{}` is not a 64-bit number", name));
  return value;
}

Decoded<std::string> bytes(const JsonObject& object, std::string_view name) {
  const auto raw = object.find(name);
  if (!raw || *raw == "null") return std::string();
  const auto text = object.find_string(name);
  auto decoded = text ? base64::decode(*text) : std::nullopt;
  if (!decoded) return wrong(fmt::format("`{}` is not base64", name));
  return std::move(*decoded);
}

Decoded<std::string> text(const JsonObject& object, std::string_view name) {
  const auto raw = object.find(name);
  if (!raw || *raw == "null") return std::string();
  auto found = object.find_string(name);
  if (!found) return wrong(fmt::format("`{}` is not a string", name));
  return std::move(*found);
}

Decoded<bool> flag(const JsonObject& object, std::string_view name) {
  const auto raw = object.find(name);
  if (!raw || *raw == "null") return false;
  const auto found = object.find_bool(name);
  if (!found) return wrong(fmt::format("`{}` is neither true nor false", name));
  return *found;
}

Decoded<std::vector<std::string_view>> list(const JsonObject& object, std::string_view name) {
  const auto raw = object.find(name);
  if (!raw || *raw == "null") return std::vector<std::string_view>();
  if (!raw->starts_with('[')) return wrong(fmt::format("`{}` is not an array", name));
  return wire::elements(*raw, kNoLimit);
}

Decoded<JsonObject> parse(std::string_view body) {
  auto object = JsonObject::parse(body);
  if (!object) return wrong("not a JSON object");
  return std::move(*object);
}

// Every answer of etcd has a header; without one it is another server's answer.
Decoded<std::int64_t> revision(const JsonObject& object) {
  const auto header = object.find_object("header");
  if (!header) return wrong("`header` is missing");
  return integer(*header, "revision");
}

// The `result` of one message of a stream.
Decoded<JsonObject> result(const JsonObject& message) {
  auto found = message.find_object("result");
  if (!found) return wrong("`result` is missing");
  return std::move(*found);
}

Decoded<std::chrono::seconds> ttl(const JsonObject& object) {
  if (const auto checked = revision(object); !checked) return wrong(checked.error());
  const auto seconds = integer(object, "TTL");
  if (!seconds) return wrong(seconds.error());
  return std::chrono::seconds(*seconds);
}

// ---- keys and events ----

Decoded<KeyValue> key_value(std::string_view raw) {
  const auto object = JsonObject::within(raw);
  if (!object) return wrong("a key-value pair is not an object");
  auto key = bytes(*object, "key");
  if (!key) return wrong(key.error());
  if (key->empty()) return wrong("`key` is missing");
  auto value = bytes(*object, "value");
  if (!value) return wrong(value.error());
  const auto lease = integer(*object, "lease");
  const auto modified = integer(*object, "mod_revision");
  const auto created = integer(*object, "create_revision");
  for (const auto* number : {&lease, &modified, &created}) {
    if (!*number) return wrong(number->error());
  }
  return KeyValue{.key = std::move(*key),
                  .value = std::move(*value),
                  .lease = *lease,
                  .mod_revision = *modified,
                  .create_revision = *created};
}

Decoded<Event> event(std::string_view raw) {
  const auto object = JsonObject::within(raw);
  if (!object) return wrong("an event is not an object");
  const auto type = text(*object, "type");
  if (!type) return wrong(type.error());
  if (!type->empty() && *type != "PUT" && *type != "DELETE")
    return wrong("an event's `type` is neither PUT nor DELETE");
  const auto pair = object->find("kv");
  if (!pair) return wrong("an event's `kv` is missing");
  auto entry = key_value(*pair);
  if (!entry) return wrong(entry.error());
  return Event{.kind = *type == "DELETE" ? Event::Kind::Delete : Event::Kind::Put,
               .entry = std::move(*entry)};
}

bool says(const Refusal& refusal, std::string_view words) {
  return refusal.message.find(words) != std::string::npos;
}

}  // namespace

// ---- requests ----

KeyRange prefix_range(std::string_view prefix) {
  // etcd knows no empty key, and takes "\0" as an end for: everything behind the begin.
  if (prefix.empty()) return {std::string(kLowestKey), std::string(kLowestKey)};
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return {std::string(prefix), std::string(kLowestKey)};
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::string(prefix), std::move(end)};
}

std::string key_after(std::string_view key) { return std::string(key).append(kLowestKey); }

std::string encode(const RangeRequest& request) {
  return fmt::format(
      R"({{"key":"{}","range_end":"{}","limit":"{}","revision":"{}","keys_only":{}}})",
      base64::encode(request.keys.begin), base64::encode(request.keys.end), request.limit,
      request.revision, request.keys_only);
}

std::string encode_put(std::string_view key, std::string_view value, std::int64_t lease) {
  return fmt::format(R"({{"key":"{}","value":"{}","lease":"{}"}})", base64::encode(key),
                     base64::encode(value), lease);
}

std::string encode_erase(std::string_view key) {
  return fmt::format(R"({{"key":"{}"}})", base64::encode(key));
}

std::string encode_grant(std::chrono::seconds ttl) {
  return fmt::format(R"({{"TTL":"{}"}})", ttl.count());
}

std::string encode_lease(std::int64_t lease) { return fmt::format(R"({{"ID":"{}"}})", lease); }

std::string encode_authenticate(std::string_view user, std::string_view password) {
  return fmt::format(R"({{"name":{},"password":{}}})", wire::json_quote(user),
                     wire::json_quote(password));
}

std::string encode_watch(const KeyRange& keys, std::int64_t from) {
  return fmt::format(
      R"({{"create_request":{{"key":"{}","range_end":"{}","start_revision":"{}","progress_notify":true}}}})",
      base64::encode(keys.begin), base64::encode(keys.end), from);
}

// ---- answers ----

Decoded<Page> decode_range(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  const auto at = revision(*object);
  if (!at) return wrong(at.error());
  const auto more = flag(*object, "more");
  if (!more) return wrong(more.error());
  const auto pairs = list(*object, "kvs");
  if (!pairs) return wrong(pairs.error());
  Page page{.revision = *at, .entries = {}, .more = *more};
  page.entries.reserve(pairs->size());
  for (const std::string_view raw : *pairs) {
    auto entry = key_value(raw);
    if (!entry) return wrong(entry.error());
    page.entries.push_back(std::move(*entry));
  }
  return page;
}

Decoded<std::int64_t> decode_put(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  return revision(*object);
}

Decoded<Lease> decode_grant(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  const auto id = integer(*object, "ID");
  if (!id) return wrong(id.error());
  const auto seconds = ttl(*object);
  if (!seconds) return wrong(seconds.error());
  if (*id == 0 || seconds->count() <= 0) return wrong("a lease without an ID or a TTL");
  return Lease{.id = *id, .ttl = *seconds};
}

Decoded<std::chrono::seconds> decode_keep_alive(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  const auto answer = result(*object);
  if (!answer) return wrong(answer.error());
  return ttl(*answer);
}

Decoded<std::chrono::seconds> decode_time_to_live(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  return ttl(*object);
}

Decoded<std::string> decode_token(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  auto token = text(*object, "token");
  if (!token) return wrong(token.error());
  if (token->empty()) return wrong("`token` is missing");
  // It goes into a header of ours.
  for (const char c : *token) {
    if (c <= ' ' || c > '~') return wrong("`token` cannot be sent in a header");
  }
  return token;
}

Decoded<Nothing> decode_done(std::string_view body) {
  const auto object = parse(body);
  if (!object) return wrong(object.error());
  if (const auto checked = revision(*object); !checked) return wrong(checked.error());
  return Nothing{};
}

Decoded<WatchMessage> decode_watch(std::string_view line) {
  const auto object = parse(line);
  if (!object) return wrong(object.error());
  const auto answer = result(*object);
  if (!answer) return wrong(answer.error());
  const auto at = revision(*answer);
  const auto compacted = integer(*answer, "compact_revision");
  for (const auto* number : {&at, &compacted}) {
    if (!*number) return wrong(number->error());
  }
  const auto created = flag(*answer, "created");
  const auto canceled = flag(*answer, "canceled");
  for (const auto* found : {&created, &canceled}) {
    if (!*found) return wrong(found->error());
  }
  auto why = text(*answer, "cancel_reason");
  if (!why) return wrong(why.error());
  const auto raw_events = list(*answer, "events");
  if (!raw_events) return wrong(raw_events.error());
  WatchMessage message{.revision = *at,
                       .created = *created,
                       .canceled = *canceled,
                       .cancel_reason = std::move(*why),
                       .compact_revision = *compacted,
                       .events = {}};
  message.events.reserve(raw_events->size());
  for (const std::string_view raw : *raw_events) {
    auto decoded = event(raw);
    if (!decoded) return wrong(decoded.error());
    message.events.push_back(std::move(*decoded));
  }
  return message;
}

// ---- refusals ----

// {"error":"words","code":3} for a plain call, {"error":{"grpc_code":3,"message":"words"}} in a
// stream, {"code":3,"message":"words"} from later versions.
std::optional<Refusal> find_refusal(std::string_view body) {
  const auto object = JsonObject::parse(body);
  if (!object) return std::nullopt;
  const auto nested = object->find_object("error");
  const JsonObject& from = nested ? *nested : *object;
  auto message = from.find_string("message");
  if (!message && !nested) message = object->find_string("error");
  const auto grpc_code = from.find_integer("grpc_code");
  const auto code = grpc_code ? grpc_code : from.find_integer("code");
  if (!message || message->empty()) return std::nullopt;
  if (!code && !nested && !object->has("error")) return std::nullopt;
  if (message->size() > kLongestMessage) message->resize(kLongestMessage);
  const bool known = code && *code > 0 && *code <= kUnauthenticated;
  return Refusal{.code = known ? static_cast<int>(*code) : kUnknown,
                 .message = std::move(*message)};
}

std::string foreign_answer(std::string_view path, int status, std::string_view body) {
  std::string line(body.substr(0, std::min(body.find_first_of("\r\n"), kLongestLine)));
  std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("{} answered with status {}: {}", path, status,
                     line.empty() ? "nothing more" : line);
}

Reason reason_of(const Refusal& refusal) {
  if (asks_for_token(refusal) || refusal.code == kPermissionDenied ||
      says(refusal, "permission denied") || says(refusal, "authentication failed"))
    return Reason::Unauthorized;
  switch (refusal.code) {
    case kUnavailable:
    case kDeadlineExceeded:
      return Reason::Unreachable;
    case kNotFound:
      return Reason::NotFound;
    case kOutOfRange:
      return says(refusal, "compacted") ? Reason::Compacted : Reason::Refused;
    default:
      return Reason::Refused;
  }
}

bool asks_for_token(const Refusal& refusal) {
  return refusal.code == kUnauthenticated || says(refusal, "invalid auth token") ||
         says(refusal, "user name is empty") || says(refusal, "revision of auth store is old");
}

bool knows_no_users(const Refusal& refusal) {
  return says(refusal, "authentication is not enabled");
}

}  // namespace baton::etcd
