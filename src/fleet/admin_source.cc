// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/admin_source.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace baton::fleet {
namespace {

std::string key_of(const Slot& slot) { return slot.model + " " + slot.server; }

Slot slot_of_member(const Fleet::Member& member) {
  return {member.model->name(), member.worker->authority()};
}

std::string place_of(const Fleet::Member& member) {
  switch (member.origin) {
    case Origin::File:
      return "in the configuration";
    case Origin::Admin:
      return "at the admin address";
    case Origin::Etcd:
      break;
  }
  return fmt::format("in etcd, as {}", member.key);
}

Error announced_elsewhere(const Fleet::Member& member) {
  return {Errc::Conflict,
          fmt::format("worker {} is announced {}: change it there, or drain it here",
                      member.worker->name(), place_of(member))};
}

Error is_leaving(const Fleet::Member& member) {
  return {Errc::Conflict,
          fmt::format("worker {} is leaving, as soon as its {} running requests have ended; add it "
                      "again to keep it",
                      member.worker->name(), member.worker->in_flight())};
}

}  // namespace

Result<Fleet::Member> AdminSource::find(std::string_view worker) const {
  auto found = fleet_.find_member(worker);
  if (found) return *std::move(found);
  return fail(Errc::NotFound, fmt::format("there is no worker {}; GET /workers lists them all, "
                                          "with number, name and host:port",
                                          worker));
}

// Pins and calls of this API name workers so: the name of one must not lead to another.
Result<void> AdminSource::check_name(const model::Announcement& announcement) const {
  if (announcement.spec.name.empty()) return {};
  const Slot slot = fleet::slot_of(announcement);
  if (const auto namesake = fleet_.find_namesake(slot, announcement.spec.name)) {
    return fail(Errc::Conflict,
                fmt::format("worker {} of model {} is called {} already: choose another id",
                            namesake->authority(), slot.model, announcement.spec.name));
  }
  return {};
}

Result<AdminSource::Added> AdminSource::add(model::Announcement announcement) {
  const Slot slot = fleet::slot_of(announcement);
  const auto there = fleet_.find_member(slot);
  // An announcement here would have no effect.
  if (there && there->origin == Origin::Etcd) return fail(announced_elsewhere(*there));
  if (auto checked = check_name(announcement); !checked) return fail(std::move(checked.error()));
  const std::string key = key_of(slot);
  const bool is_new = !fleet_.roster().of(Origin::Admin).contains(key);
  fleet_.announce(Origin::Admin, key, std::move(announcement));
  auto member = fleet_.find_member(slot);
  // Adding a drained worker again ends its drain.
  if (member->worker->draining()) fleet_.drain(member->worker->id(), false);
  return Added{*std::move(member), is_new};
}

Result<Fleet::Member> AdminSource::amend(std::string_view worker, const Change& change) {
  const auto member = find(worker);
  if (!member) return member;
  if (member->leaving) return fail(is_leaving(*member));
  if (member->origin != Origin::Admin) return fail(announced_elsewhere(*member));
  const Slot slot = slot_of_member(*member);
  auto changed = change(fleet_.roster().of(Origin::Admin).at(member->key));
  if (!changed) return fail(std::move(changed.error()));
  if (fleet::slot_of(*changed) != slot) {
    return fail(Errc::InvalidRequest,
                "model and url say which worker it is and cannot be changed: add another worker "
                "and remove this one");
  }
  if (auto checked = check_name(*changed); !checked) return fail(std::move(checked.error()));
  fleet_.announce(Origin::Admin, member->key, *std::move(changed));
  return *fleet_.find_member(slot);
}

Result<Fleet::Member> AdminSource::remove(std::string_view worker) {
  auto member = find(worker);
  if (!member || member->leaving) return member;
  const Slot slot = slot_of_member(*member);
  const std::string key = key_of(slot);
  if (!fleet_.roster().of(Origin::Admin).contains(key)) return fail(announced_elsewhere(*member));
  fleet_.withdraw(Origin::Admin, key);
  if (auto still_there = fleet_.find_member(slot)) return *std::move(still_there);
  return find(std::to_string(member->worker->id().value));
}

Result<Fleet::Member> AdminSource::drain(std::string_view worker, bool draining) {
  auto member = find(worker);
  if (!member) return member;
  if (member->leaving) {
    if (draining) return member;
    return fail(is_leaving(*member));
  }
  fleet_.drain(member->worker->id(), draining);
  if (!draining && member->worker->draining()) {
    return fail(Errc::Conflict,
                fmt::format("worker {} is announced {} with draining: true; change it there",
                            member->worker->name(), place_of(*member)));
  }
  return member;
}

}  // namespace baton::fleet
