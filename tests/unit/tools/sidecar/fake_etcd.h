// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "etcd/options.h"
#include "libs/base64/base64.h"
#include "support/fake_engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace baton::sidecar {

// Role. As much of etcd's gateway as a registration needs, with leases that end only when the test
//   says so.
// Confinement. Any thread.
class FakeEtcd {
 public:
  etcd::Options options() const {
    etcd::Options made;
    made.endpoints.push_back({server_.endpoint(), false});
    made.timeout = std::chrono::milliseconds(5000);
    return made;
  }

  // While it is away, connections are closed without an answer.
  void set_away(bool away) {
    const std::lock_guard lock(mutex_);
    away_ = away;
  }
  // Every call is answered like this; empty: as etcd does.
  void refuse_all(std::string refusal) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(refusal);
  }
  void end_all_leases() {
    const std::lock_guard lock(mutex_);
    leases_.clear();
    keys_.clear();
  }
  // The lease of the next put has just ended.
  void end_lease_before_next_put() {
    const std::lock_guard lock(mutex_);
    ends_before_put_ = true;
  }

  std::optional<std::string> value(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = keys_.find(key);
    if (found == keys_.end()) return std::nullopt;
    return found->second.value;
  }
  // The only key there is; empty: none.
  std::string only_key() const {
    const std::lock_guard lock(mutex_);
    return keys_.size() == 1 ? keys_.begin()->first : "";
  }
  std::size_t keys() const {
    const std::lock_guard lock(mutex_);
    return keys_.size();
  }
  std::size_t leases() const {
    const std::lock_guard lock(mutex_);
    return leases_.size();
  }
  int calls(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(path);
    return found == calls_.end() ? 0 : found->second;
  }

 private:
  struct Value {
    std::string value;
    std::int64_t lease;
  };

  std::string answer(const test::SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    const auto begin = request.head.find(' ') + 1;
    const std::string path = request.head.substr(begin, request.head.find(' ', begin) - begin);
    ++calls_[path];
    if (!refusal_.empty()) return refusal_;
    const auto body = nlohmann::json::parse(request.body);
    const auto number = [&](const char* name) {
      return std::stoll(body.value(name, std::string("0")));
    };
    if (path == "/v3/lease/grant") {
      leases_.insert(++last_lease_);
      return test::response(200, fmt::format(R"({{"header":{{}},"ID":"{}","TTL":{}}})", last_lease_,
                                             body.at("TTL").dump()));
    }
    if (path == "/v3/lease/keepalive") {
      const bool alive = leases_.contains(number("ID"));
      return test::response(200, fmt::format("{{\"result\":{{\"header\":{{}},\"ID\":\"{}\"{}}}}}\n",
                                             number("ID"), alive ? R"(,"TTL":"1")" : ""));
    }
    if (path == "/v3/lease/revoke") {
      leases_.erase(number("ID"));
      std::erase_if(keys_, [&](const auto& key) { return key.second.lease == number("ID"); });
      return test::response(200, R"({"header":{}})");
    }
    if (path == "/v3/kv/put") return put(body, number("lease"));
    return test::response(404, "Not Found\n");
  }

  std::string put(const nlohmann::json& body, std::int64_t lease) {
    if (std::exchange(ends_before_put_, false)) leases_.erase(lease);
    if (!leases_.contains(lease)) {
      return test::response(404, R"({"message":"etcdserver: requested lease not found","code":5})");
    }
    keys_[*base64::decode(body.at("key").get<std::string>())] = {
        *base64::decode(body.at("value").get<std::string>()), lease};
    return test::response(200, R"({"header":{"revision":"5"}})");
  }

  bool is_away() const {
    const std::lock_guard lock(mutex_);
    return away_;
  }

  mutable std::mutex mutex_;
  bool away_ = false;
  bool ends_before_put_ = false;
  std::string refusal_;
  std::int64_t last_lease_ = 70;
  std::set<std::int64_t> leases_;
  std::map<std::string, Value> keys_;
  std::map<std::string, int, std::less<>> calls_;
  test::FakeEngine server_{[this](test::FakePeer& peer) {
    const auto request = peer.read_request();
    if (request && !is_away()) peer.write(answer(*request));
  }};
};

}  // namespace baton::sidecar
