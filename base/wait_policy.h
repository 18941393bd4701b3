/* SPDX-License-Identifier: MIT */
/* Idle threads sleep, unless the user says otherwise. */
#ifndef WAIT_POLICY_H
#define WAIT_POLICY_H

/* Starts the program once more with OMP_WAIT_POLICY=passive, unless env, the environment, says how threads are to
 * wait. Returns when there is nothing to do, or when it cannot be done: then the runtime's own rule holds. May be called
 * before the constructors of libraries. */
void wait_policy_settle(char **argv, char **env);

#endif
