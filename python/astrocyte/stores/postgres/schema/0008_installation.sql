INSERT INTO installation VALUES (replace(gen_random_uuid()::text, '-', ''));
