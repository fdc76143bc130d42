// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/worker_booking.h"

#include <expected>
#include <utility>

namespace baton::test {

// What tests want of scheduling::book: the booking itself. `told` gets how it was chosen.
inline std::expected<fleet::Booking, scheduling::NotBooked> book_worker(
    fleet::WorkerSet& set, const scheduling::WorkerRequirements& requirements, const Random& random,
    scheduling::Choice* told = nullptr) {
  auto booked = scheduling::book(set, requirements, random, {.explain = told != nullptr});
  if (!booked) return std::unexpected(std::move(booked.error()));
  if (told != nullptr) *told = std::move(*booked->choice);
  return std::move(booked->booking);
}

}  // namespace baton::test
