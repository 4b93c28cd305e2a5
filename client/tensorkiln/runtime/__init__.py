"""Run compiled programs: load their code, plan their memory, execute their schedules."""
