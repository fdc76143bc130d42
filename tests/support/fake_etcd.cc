// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "support/fake_etcd.h"

#include "libs/base64/base64.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace baton::test {
namespace {

// The number behind `"name":"`; 0 where there is none.
std::int64_t number(std::string_view body, std::string_view name) {
  const std::string mark = fmt::format("\"{}\":\"", name);
  const std::size_t at = body.find(mark);
  std::int64_t value = 0;
  if (at != std::string_view::npos) {
    const std::string_view digits = body.substr(at + mark.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  return value;
}

std::string chunk(std::string_view line) {
  return fmt::format("{:x}\r\n{}\n\r\n", line.size() + 1, line);
}

}  // namespace

FakeEtcd::FakeEtcd() {
  server_.emplace([this](FakePeer& peer) { serve(peer); });
}

FakeEtcd::~FakeEtcd() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  server_.reset();
}

void FakeEtcd::put(std::string key, std::string value, std::int64_t lease) {
  change({{std::move(key), std::move(value), lease}});
}

void FakeEtcd::erase(std::string key) { change({{std::move(key), std::nullopt, 0}}); }

void FakeEtcd::change(std::vector<Change> changes) {
  const std::lock_guard lock(mutex_);
  ++revision_;
  std::string events;
  for (const Change& one : changes) {
    if (!events.empty()) events += ',';
    events += event(one);
  }
  history_.push_back(
      {revision_, fmt::format(R"({{"result":{{"header":{{"revision":"{}"}},"events":[{}]}}}})",
                              revision_, events)});
  changed_.notify_all();
}

std::string FakeEtcd::event(const Change& change) {
  const std::string key = base64::encode(change.key);
  if (!change.value) {
    entries_.erase(change.key);
    return fmt::format(R"({{"type":"DELETE","kv":{{"key":"{}","mod_revision":"{}"}}}})", key,
                       revision_);
  }
  entries_.insert_or_assign(change.key, Entry{*change.value, change.lease, revision_});
  if (change.lease != 0) leases_.insert(change.lease);
  return fmt::format(R"({{"kv":{{"key":"{}","value":"{}","lease":"{}","mod_revision":"{}"}}}})",
                     key, base64::encode(*change.value), change.lease, revision_);
}

void FakeEtcd::expire(std::int64_t lease) {
  std::vector<Change> gone;
  {
    const std::lock_guard lock(mutex_);
    leases_.erase(lease);
    for (const auto& [key, entry] : entries_) {
      if (entry.lease == lease) gone.push_back({key, std::nullopt, 0});
    }
  }
  change(std::move(gone));
}

void FakeEtcd::compact() {
  const std::lock_guard lock(mutex_);
  compacted_ = ++revision_;
  changed_.notify_all();
}

void FakeEtcd::set_away(bool away) {
  const std::lock_guard lock(mutex_);
  away_ = away;
  ++era_;
  changed_.notify_all();
}

void FakeEtcd::wipe() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  leases_.clear();
  history_.clear();
  revision_ = 1;
}

void FakeEtcd::set_secretive(bool secretive) {
  const std::lock_guard lock(mutex_);
  secretive_ = secretive;
}

std::size_t FakeEtcd::listings() const {
  const std::lock_guard lock(mutex_);
  return listings_;
}

std::size_t FakeEtcd::lease_questions() const {
  const std::lock_guard lock(mutex_);
  return lease_questions_;
}

void FakeEtcd::serve(FakePeer& peer) {
  const auto request = peer.read_request();
  if (!request) return;
  if (request->head.starts_with("POST /v3/watch "))
    return watch(peer, number(request->body, "start_revision"));
  std::string answer;
  {
    const std::lock_guard lock(mutex_);
    if (away_) return;
    if (request->head.starts_with("POST /v3/lease/timetolive ")) {
      ++lease_questions_;
      answer = secretive_ ? response(403, R"({"error":"etcdserver: permission denied","code":7})")
                          : response(200, time_to_live(request->body));
    } else {
      // A probe of the watch wants keys only.
      if (request->body.find(R"("keys_only":true)") == std::string::npos) ++listings_;
      answer = response(200, range());
    }
  }
  peer.write(answer);
}

std::string FakeEtcd::range() const {
  std::string entries;
  for (const auto& [key, entry] : entries_) {
    if (!entries.empty()) entries += ',';
    entries +=
        fmt::format(R"({{"key":"{}","value":"{}","lease":"{}","mod_revision":"{}"}})",
                    base64::encode(key), base64::encode(entry.value), entry.lease, entry.revision);
  }
  return fmt::format(R"({{"header":{{"revision":"{}"}},"kvs":[{}]}})", revision_, entries);
}

std::string FakeEtcd::time_to_live(std::string_view body) {
  const std::int64_t lease = number(body, "ID");
  return fmt::format(R"({{"header":{{}},"ID":"{}","TTL":"{}"}})", lease,
                     leases_.contains(lease) ? 9 : -1);
}

void FakeEtcd::watch(FakePeer& peer, std::int64_t from) {
  std::unique_lock lock(mutex_);
  if (away_) return;
  const int era = era_;
  std::int64_t next = from;
  std::string bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  bytes += chunk(
      fmt::format(R"({{"result":{{"header":{{"revision":"{}"}},"created":true}}}})", revision_));
  const auto over = [&] { return ending_ || era_ != era; };
  while (!over()) {
    for (const Message& message : history_) {
      if (message.revision < next) continue;
      bytes += chunk(message.line);
      next = message.revision + 1;
    }
    const bool compacted = compacted_ >= next;
    if (compacted) {
      bytes += chunk(fmt::format(
          R"({{"result":{{"header":{{}},"canceled":true,"compact_revision":"{}"}}}})", compacted_));
    }
    lock.unlock();
    peer.write(std::exchange(bytes, {}));
    lock.lock();
    if (compacted) return;
    changed_.wait(lock, [&] { return over() || revision_ >= next || compacted_ >= next; });
  }
}

}  // namespace baton::test
