// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/published.h"
#include "fleet/adapter_request.h"
#include "fleet/model.h"
#include "fleet/roster.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::fleet {

// Role. The registry of models and their workers.
// Confinement. Any thread may read; only the control thread changes it.
// Lifetime. Owned by app::Services; outlives every request.
// Invariants. Level-triggered: the serving workers follow from what sources say now (Roster) and
//   from the workers' health now (Health), not from the order of the news. A server that comes back
//   as another instance is another worker. A leaving worker gets no new request, and is gone when
//   its last one has ended.
class Fleet {
 public:
  Fleet(const config::Config& config, telemetry::Registry& metrics, telemetry::Logger& log);

  // The target that a request names.
  struct Served {
    std::shared_ptr<Model> model;                // null: not served
    std::optional<AdapterRequest> adapter = {};  // of the model
  };
  // By name or alias, or by an adapter that a worker has loaded or would load.
  Served find_served(std::string_view name) const;
  // The same, only the model; null if it is not served.
  std::shared_ptr<Model> find(std::string_view name) const { return find_served(name).model; }
  // By name, host:port or number; null where there is none. A server of several models is several
  // workers: the one of the first model.
  std::shared_ptr<Worker> find_worker(std::string_view name) const;
  std::vector<std::shared_ptr<Model>> models() const { return catalog_.get()->models; }
  // Adapters and their models, by name.
  std::vector<std::pair<std::string, std::string>> adapters() const;

  // Sets the configuration file's models with their options, and their workers.
  void configure(const std::vector<config::Model>& models);
  // Announcements of other sources, each under a key of its own.
  void announce(Origin origin, std::string_view key, model::Announcement announcement);
  void withdraw(Origin origin, std::string_view key);
  void replace(Origin origin, Roster::Announcements announcements);
  // Several of them at once; nothing: the key is withdrawn.
  using Changes = std::map<std::string, std::optional<model::Announcement>, std::less<>>;
  void apply(Origin origin, Changes changes);
  const Roster& roster() const { return roster_; }

  // Sets an operator's drain: the worker gets no new requests, whatever its source says, or no
  // longer. False if there is no such worker.
  bool drain(model::WorkerId id, bool draining);
  // The worker has said which adapters it has loaded.
  void loaded(model::WorkerId id, std::vector<std::string> adapters);
  // The process behind a worker has been replaced: the old one's facts are void.
  void restarted(model::WorkerId id);
  // Removes workers that have left and have no running requests. To be called now and then.
  void sweep();

  // One worker as it stands.
  struct Member {
    std::shared_ptr<Worker> worker;
    std::shared_ptr<Model> model;
    std::shared_ptr<Pool> pool;
    Origin origin;
    std::string key;       // of its announcement
    bool leaving = false;  // no source announces it any more
  };
  std::vector<Member> members() const;
  // By name, host:port or number.
  std::optional<Member> find_member(std::string_view name) const;
  // The one that is announced for a slot. It costs the same however many there are.
  std::optional<Member> find_member(const Slot& slot) const;
  // Another worker of the slot's model that has that name or host:port; null where there is none.
  std::shared_ptr<Worker> find_namesake(const Slot& slot, std::string_view name) const;

  // Called on the control thread when a worker has joined or its announcement has changed, for
  // present ones at once; and when one has gone for good.
  using OnAdded = std::function<void(const std::shared_ptr<Worker>&, const std::string& model)>;
  using OnGone = std::function<void(model::WorkerId)>;
  void on_added(OnAdded call);
  void on_gone(OnGone gone);

 private:
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Catalog {
    std::vector<std::shared_ptr<Model>> models;  // those of the file first, in its order
    std::unordered_map<std::string, Served, NameHash, std::equal_to<>> by_name;
  };
  struct Registered {
    std::shared_ptr<Worker> worker;
    std::shared_ptr<Model> model;
    std::shared_ptr<Pool> pool;
  };

  void settle(const std::vector<Slot>& slots);
  void settle(const Slot& slot);
  void add_worker(const Slot& slot, const std::shared_ptr<Worker>& worker, std::string_view how);
  void retire(Registered registered);
  void amend(Registered& registered, const model::WorkerSpec& spec);
  void set_draining(const Registered& registered, bool draining);
  std::shared_ptr<Model> model_for(const std::string& name);
  void publish();
  std::shared_ptr<Worker> make_worker(const std::string& model, const model::WorkerSpec& spec);
  std::map<Slot, Registered>::iterator find_registered(model::WorkerId id);
  void add_metrics();

  telemetry::Registry& metrics_;
  telemetry::Logger& log_;
  const config::Health health_;
  std::vector<config::Model> configured_;
  std::map<std::string, std::shared_ptr<Model>, std::less<>> models_;  // by name
  std::map<std::string, std::shared_ptr<LoadNotifier>>
      load_notifiers_;  // by model; outlive its options
  Roster roster_;
  std::map<Slot, Registered> registered_;
  std::vector<Registered> leaving_;
  std::set<Slot> drained_;  // by an operator
  std::uint64_t next_id_ = 1;
  // Common measurements of workers of one kind.
  std::map<std::pair<std::string, model::Role>, Worker::Siblings> siblings_;
  std::vector<OnAdded> on_added_;
  std::vector<OnGone> on_gone_;
  Published<Catalog> catalog_;
};

}  // namespace baton::fleet
