// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
